import type { Entry } from '../../limiter/entry.js';
import { isCredential } from '../../policy/redact.js';
import { quantity } from '../../quantity.js';
import { type EntrySources, entryList, namedEntry } from '../entry-sources.js';
import { SteadyClock } from '../log/order/steady-clock.js';
import { type ChosenLimit, chooseLimit, type Margins } from './choose-limit.js';
import { DemandTable } from './demand-table.js';
import { findOutliers } from './outliers.js';
import { type RouteNode, RouteTree } from './route-tree.js';
import { shownEntryValue } from './secret-text.js';
import { grouped, SPOKEN_RATES } from './spoken-rates.js';

/** A descriptor of a logged request. Requests that the log shows as denied are included. */
export interface Demand {
  readonly startMicros: number;
  readonly entries: readonly Entry[];
  /** Hits of the descriptor. Peeks (0) and refunds (below 0) do not count. */
  readonly hits: number;
}

export interface SuggestOptions extends Margins {
  /** Key of the entry that names the caller. */
  readonly by: string;
  readonly sources?: EntrySources;
  /** Whether each limit gets a second limit for a day. */
  readonly daily: boolean;
  /** Maximum number of callers. A caller counts once for each of its route groups. */
  readonly maxCallers: number;
  /** Maximum number of nodes of the policy. */
  readonly maxNodes: number;
}

export const DEFAULT_SUGGEST_OPTIONS = {
  share: 0.999,
  headroom: 0.2,
  daily: false,
  maxCallers: 500_000,
  maxNodes: 2000,
} as const;

/** Maximum number of entries that a message names. */
const MAX_KEYS = 20;

/** A caller whose use is far above that of all others. */
export interface Outlier {
  /** As it may be shown: redacted if it is a secret. */
  readonly name: string;
  /** Hits in its busiest hour. */
  readonly busiestHour: number;
  /** A limit that would have passed all of its requests. */
  readonly needs: ChosenLimit['measured'];
  readonly isDenied: boolean;
}

/** The suggested limit of a route group, with its basis. */
export interface RouteLimit extends ChosenLimit {
  readonly node: RouteNode;
  readonly requests: number;
  readonly hits: number;
  readonly wellBehaved: readonly number[];
  /** Number of well-behaved callers that the limit would have denied a request. */
  readonly denied: number;
  readonly outliers: readonly Outlier[];
}

export interface Suggestion {
  readonly tree: RouteTree;
  readonly table: DemandTable;
  readonly limits: ReadonlyMap<RouteNode, RouteLimit>;
  /** Descriptors without an entry that names the caller. */
  readonly withoutCaller: number;
  /** Number of times that the clock of the log was set back. */
  readonly clockSteps: number;
}

/** The reason for a missing suggestion, as a sentence. */
export interface Refused {
  readonly refused: string;
}

/**
 * Suggests limits that would have passed a share of the well-behaved callers. `batches` are descriptors in the order of
 * their requests' start. Memory depends on the number of callers, and not on the length of the log.
 */
export async function suggestLimits(
  batches: AsyncIterable<Iterable<Demand>> | Iterable<Iterable<Demand>>,
  options: SuggestOptions,
): Promise<Suggestion | Refused> {
  const { by, maxCallers, maxNodes } = options;
  const tree = new RouteTree(by, maxNodes);
  const table = new DemandTable();
  const clock = new SteadyClock();
  let withoutCaller = 0;
  const otherKeys = new Set<string>();
  for await (const batch of batches) {
    for (const { startMicros, entries, hits } of batch) {
      const micros = clock.read(startMicros);
      if (hits <= 0) continue;
      const found = tree.find(entries);
      if (found === undefined) {
        withoutCaller++;
        for (const { key } of entries) if (otherKeys.size < MAX_KEYS) otherKeys.add(key);
        continue;
      }
      const { callers, coverage } = found.node;
      let series = callers.get(found.caller);
      if (series === undefined) {
        if (table.count === maxCallers) return { refused: tooManyCallers(by, maxCallers) };
        if (tree.isFull) return { refused: tooManyRoutes(tree, maxNodes) };
        series = table.add();
        callers.set(found.caller, series);
      }
      coverage.observe(startMicros);
      table.observe(series, micros, hits);
    }
  }
  if (table.count === 0)
    return { refused: noCallers(by, withoutCaller, entryList(otherKeys, options.sources)) };
  const limits = new Map<RouteNode, RouteLimit>();
  for (const node of tree.nodes()) {
    if (node.callers.size > 0) limits.set(node, routeLimit(node, table, options));
  }
  return { tree, table, limits, withoutCaller, clockSteps: clock.steps };
}

function routeLimit(node: RouteNode, table: DemandTable, options: SuggestOptions): RouteLimit {
  const all = [...node.callers.values()];
  const { wellBehaved, outliers } = findOutliers(table, all);
  const chosen = chooseLimit(table, wellBehaved, options);
  const { key, source = key } = namedEntry(options.by, options.sources);
  const rate = SPOKEN_RATES.indexOf(chosen.rate);
  const isDenied = (series: number): boolean => table.burst(series, rate) > chosen.burst;
  const names =
    outliers.length === 0
      ? new Map<number, string>()
      : new Map([...node.callers].map(([name, one]) => [one, name]));
  return {
    ...chosen,
    node,
    requests: sum(all, (series) => table.requests(series)),
    hits: sum(all, (series) => table.hits(series)),
    wellBehaved,
    denied: wellBehaved.filter(isDenied).length,
    outliers: outliers.map((series) => ({
      name: shownEntryValue(isCredential(source) ? source : key, names.get(series) ?? ''),
      busiestHour: table.busiest(series, 3600),
      needs: chooseLimit(table, [series], { share: 1, headroom: 0 }).measured,
      isDenied: isDenied(series),
    })),
  };
}

function sum(series: readonly number[], numberOf: (one: number) => number): number {
  return series.reduce((total, one) => total + numberOf(one), 0);
}

function tooManyCallers(by: string, most: number): string {
  return (
    `the log has more than ${grouped(most)} values of "${by}", counted for each route; ` +
    'name an entry with fewer values with --by, or pass the log of fewer routes'
  );
}

function tooManyRoutes(tree: RouteTree, most: number): string {
  const { key, count } = tree.mostValues();
  return (
    `the descriptors have more than ${grouped(most)} combinations of entries, and "${key}" has ` +
    `${quantity(count, 'value')}; leave this entry out of the descriptors, or group its values with derive`
  );
}

function noCallers(by: string, withoutCaller: number, keys: string): string {
  if (withoutCaller === 0)
    return 'the log has no requests that make a descriptor, so no limit can be suggested';
  const all = quantity(withoutCaller, 'descriptor');
  return `the log has ${all}, but none with the entry "${by}"; name another entry with --by: ${keys}`;
}
