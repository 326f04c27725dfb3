import type { Overview, RuleSums } from '../../admin/page/messages.js';
import { ALL_MEASURES, TrafficCharts } from '../dom/chart.js';
import { byId, type Child, el, RenderedPart } from '../dom/element.js';
import { tableOf } from '../dom/table.js';
import { clockOf, commandOf, durationSince, nameOf, relativeTime, sentence, stateOf } from '../dom/texts.js';
import { slotsOf } from '../text/chart-range.js';
import { type DeniedSince, deniedSince } from '../text/denied-since.js';
import { exampleCommand } from '../text/example-command.js';
import { countOf, countText } from '../text/numbers.js';
import { hasTraffic } from '../text/recent-rates.js';
import { ruleKey } from '../text/rule-tree.js';
import { visibleText } from '../text/shown-text.js';
import { clockText } from '../text/times.js';
import type { TrafficLabel } from '../text/traffic-label.js';
import type { PageState, View } from './page-state.js';
import { rangeChoice } from './range-choice.js';
import { domainsPart, policyPart, storePart, workersPart } from './system-parts.js';
import { trafficElement } from './traffic-element.js';

/** Maximum number of rules in the list of rules with denials. */
const MAX_WORST_RULES = 5;
/** Interval between reads of the start of these denials, in milliseconds. It is shorter if the rules have changed. */
const SINCE_MS = 14_000;

interface Tiles {
  readonly health: Overview['health'];
  readonly store: Overview['store'];
  readonly policy: Pick<Overview['policy'], 'domains' | 'more_domains' | 'reload'> & {
    readonly errors: number;
  };
  readonly workers: Overview['workers'];
}

/** The view of the server's state, and of its decisions in the last hour. */
export class OverviewView implements View {
  readonly #state: PageState;
  readonly #tiles = new RenderedPart<Tiles>(byId('tiles'), tilesOf);
  readonly #policy = new RenderedPart<Overview['policy']>(byId('policy'), policyPart);
  readonly #domains = new RenderedPart<Overview['policy']>(byId('domains'), domainsPart);
  readonly #store = new RenderedPart<Overview['store']>(byId('store'), storePart);
  readonly #workers = new RenderedPart<Overview['workers']>(byId('workers'), workersPart);
  readonly #worst: RenderedPart<Worst>;
  /** Links next to the table. They are not rendered again when numbers change, so they keep the focus. */
  readonly #worstLinks = el(
    'p',
    { hidden: true },
    el('a', { href: '#top' }, 'Show affected callers'),
    ' · ',
    el('a', { href: '#rules' }, 'All rules'),
  );
  readonly #empty: RenderedPart<Empty>;
  #since: ReadonlyMap<string, DeniedSince | undefined> = new Map();
  #sinceAskedAt = 0;
  readonly #charts = new TrafficCharts('all rules together', ALL_MEASURES);

  constructor(state: PageState) {
    this.#state = state;
    const worst = el('div');
    this.#worst = new RenderedPart(worst, worstPart);
    byId('worst').append(worst, this.#worstLinks);
    this.#empty = new RenderedPart(byId('no-traffic'), emptyPart);
    byId('traffic-range').append(rangeChoice(state, 'overview-range'));
    byId('traffic').append(this.#charts.element);
    state.onRange(() => this.#showCharts());
  }

  open(): void {
    this.update();
    this.point();
  }

  update(): void {
    const { overview } = this.#state;
    if (overview === undefined) return;
    const { health, store, policy, workers } = overview;
    const { domains, more_domains, reload, errors } = policy;
    this.#tiles.show({
      health,
      store,
      policy: { domains, more_domains, reload, errors: errors.length },
      workers,
    });
    this.#policy.show({ ...policy, domains: [] });
    this.#domains.show({ ...policy, errors: [], reload: { result: 'ok', at: 0 } });
    this.#store.show(store);
    this.#workers.show(workers);
    this.#showEmpty();
    const started = overview.now - overview.uptime_seconds;
    document.getElementById('uptime')?.replaceChildren('up for ', durationSince(started));
  }

  point(): void {
    const { history } = this.#state;
    this.#showCharts();
    this.#showWorst();
    void this.#readSince();
    const known = history.series.ok.length;
    byId('known-since').textContent =
      known === 0 || known >= history.slots
        ? ''
        : `Data since ${clockText(history.ends - known * history.step)}. weir keeps rates only in memory, ` +
          'so a restart deletes all rates.';
    this.#showEmpty();
  }

  #showCharts(): void {
    const { range, history } = this.#state;
    const { step, ends, series } = history;
    this.#charts.show(series, { step, ends, slots: slotsOf(range, step, series.ok.length) });
  }

  #worstSums(): readonly RuleSums[] {
    const { sums = [] } = this.#state;
    return sums.filter(({ hour }) => hour.denied + hour.would > 0).slice(0, MAX_WORST_RULES);
  }

  #showWorst(): void {
    const sums = this.#worstSums().map((sum) => {
      const since = this.#since.get(ruleKey(sum.domain, sum.rule));
      return { ...sum, label: this.#state.labelOf(sum), since };
    });
    this.#worst.show({ sums, missingNote: this.#state.missingRatesNote() });
    this.#worstLinks.hidden = sums.length === 0;
  }

  async #readSince(): Promise<void> {
    const worst = this.#worstSums();
    const isKnown = worst.every(({ domain, rule }) => this.#since.has(ruleKey(domain, rule)));
    const pause = isKnown ? SINCE_MS : SINCE_MS / 4;
    if (worst.length === 0 || Date.now() - this.#sinceAskedAt < pause) return;
    this.#sinceAskedAt = Date.now();
    const rules = worst.map(({ domain, rule }) => ({ domain, rule }));
    const { step, ends, series } = await this.#state.readSeries(rules);
    if (series.length === 0) return;
    this.#since = new Map(
      rules.map(({ domain, rule }, at) => [
        ruleKey(domain, rule),
        deniedSince(series[at]?.denied ?? [], step, ends),
      ]),
    );
    this.#showWorst();
  }

  #showEmpty(): void {
    const { history, historyError, overview, policies } = this.#state;
    this.#empty.show({
      error: historyError,
      missingNote: overview?.keeps.history === 0 ? this.#state.missingRatesNote() : undefined,
      traffic: hasTraffic(history.series),
      known: history.step > 0,
      command: exampleCommand(policies),
    });
  }
}

function tilesOf({ health, store, policy, workers }: Tiles): readonly Child[] {
  const serving = health.status === 'SERVING';
  const hasErrors = policy.errors > 0 || policy.reload.result === 'error';
  const unavailable = store.nodes.filter(({ up, of }) => up < of).length;
  const inEffect = policy.domains.filter(({ phase }) => phase !== undefined).length + policy.more_domains;
  return [
    tile(
      'Health',
      serving ? stateOf('good', 'serving') : stateOf('bad', 'not serving'),
      health.reason ?? el('span', { id: 'uptime' }),
    ),
    tile(
      'Store',
      stateOf(
        store.up && unavailable === 0 ? 'good' : 'bad',
        store.up ? (unavailable === 0 ? 'up' : 'partly unavailable') : 'unavailable',
      ),
      store.nodes.length === 0
        ? store.name
        : `${store.nodes.length - unavailable} of ${countOf(store.nodes.length, 'server')} up`,
    ),
    tile(
      'Policies',
      hasErrors
        ? stateOf('bad', 'errors')
        : inEffect === 0
          ? stateOf('watch', 'none')
          : stateOf('good', 'valid'),
      el('span', {}, `${countOf(inEffect, 'domain')}, loaded `, relativeTime(policy.reload.at)),
    ),
    tile(
      'Workers',
      workers.every(({ status, silent_seconds }) => status === 'SERVING' && silent_seconds === undefined)
        ? stateOf('good', workers.length === 0 ? 'one process' : 'all serving')
        : stateOf('bad', 'not all serving'),
      workers.length === 0 ? 'WORKERS is 1' : countOf(workers.length, 'process', 'processes'),
    ),
  ];
}

function tile(name: string, state: HTMLElement, more: Child): HTMLElement {
  const said = typeof more === 'string' ? el('bdi', {}, visibleText(more)) : more;
  return el(
    'div',
    { class: 'tile' },
    el('h3', {}, name),
    el('p', { class: 'tile-state' }, state),
    el('p', {}, said),
  );
}

function sinceCell(since: DeniedSince | undefined): Child | readonly Child[] {
  if (since === undefined) return '–';
  return since.orBefore ? ['before ', clockOf(since.at)] : clockOf(since.at);
}

interface WorstRule extends RuleSums {
  readonly label: TrafficLabel;
  readonly since: DeniedSince | undefined;
}

interface Worst {
  readonly sums: readonly WorstRule[];
  readonly missingNote: string | undefined;
}

function worstPart({ sums, missingNote }: Worst): readonly Child[] {
  const note = missingNote === undefined ? undefined : el('p', { class: 'note' }, missingNote);
  if (sums.length === 0) {
    return [note ?? el('p', { class: 'note' }, 'No rule has denied a request in the last hour.')];
  }
  return [
    note,
    tableOf<WorstRule>(
      {
        caption: 'Rules with the most denials in the last hour',
        columns: [
          { heading: 'Rule', cell: ({ domain, label }) => [nameOf(domain), ' ', trafficElement(label)] },
          { heading: 'Denied, last minute', figures: true, cell: ({ minute }) => countText(minute.denied) },
          { heading: 'Denied, last hour', figures: true, cell: ({ hour }) => countText(hour.denied) },
          { heading: 'Would be denied, last hour', figures: true, cell: ({ hour }) => countText(hour.would) },
          { heading: 'Denying since', cell: ({ since }) => sinceCell(since) },
        ],
      },
      sums,
    ),
  ];
}

interface Empty {
  readonly error: string | undefined;
  readonly missingNote: string | undefined;
  readonly traffic: boolean;
  readonly known: boolean;
  readonly command: string | undefined;
}

function emptyPart({ error, missingNote, traffic, known, command }: Empty): readonly Child[] {
  if (error !== undefined) return [el('p', {}, 'The rates could not be loaded:'), sentence(error)];
  if (!known || traffic) return [];
  return [
    el('p', {}, el('strong', {}, 'No requests in the last hour.')),
    ...(command === undefined
      ? [el('p', {}, 'Envoy calls weir over gRPC.')]
      : [
          el('p', {}, 'Envoy calls weir over gRPC. To send a test request, run:'),
          commandOf(command, 'the command that sends a request'),
        ]),
    missingNote === undefined ? undefined : el('p', { class: 'note' }, missingNote),
  ];
}
