import type { Descriptor } from '../../../src/codec/messages.js';
import type { PolicySet } from '../../../src/policy/policy-set.js';
import type { RequestVerdict } from '../../../src/replay/decide/verdict.js';
import type { RequestCalls } from '../../../src/replay/envoy/route-table.js';
import { Columns } from '../../../src/replay/log/columns.js';
import { Replay } from '../../../src/replay/replay.js';
import type { Affected, Interval } from '../../../src/replay/report/report.js';
import { GroupTally } from '../../../src/replay/tally/group-tally.js';
import type { Tally } from '../../../src/replay/tally/tally.js';
import { setOf } from '../policy/policies.js';

/** A request with a descriptor for its tenant, and one for all tenants. */
export interface Arrival {
  readonly micros: number;
  readonly tenant: string;
  readonly hits: number;
  readonly wasDenied: boolean;
}

/** Returns a policy with a limit for each tenant, and perhaps one for all of them. */
export function policySet(ofTenant: string, ofAll: string | undefined): PolicySet {
  const all = ofAll === undefined ? '' : `  - key: all\n    rate_limit: { ${ofAll} }\n`;
  return setOf(`domain: shop\ndescriptors:\n  - key: tenant\n    rate_limit: { ${ofTenant} }\n${all}`);
}

/** Returns a policy with a chain of limits (`then`) for each tenant, and perhaps one for all of them. */
export function chainSet(limits: readonly string[], ofAll: string | undefined): PolicySet {
  const items = limits.map((limit, at) => {
    const then = at + 1 < limits.length ? `then: l${at + 1}, ` : '';
    return `{ name: l${at}, ${then}${limit} }`;
  });
  const all = ofAll === undefined ? '' : `  - key: all\n    rate_limit: { ${ofAll} }\n`;
  return setOf(`domain: shop\ndescriptors:\n  - key: tenant\n    rate_limits: [${items.join(', ')}]\n${all}`);
}

function callsOf({ tenant, hits }: Arrival): readonly RequestCalls[] {
  const descriptor = (key: string, value: string): Descriptor => {
    return { entries: [{ key, value }], limit: undefined, hitsAddend: hits, isNegativeHits: false };
  };
  return [{ domain: 'shop', start: [descriptor('tenant', tenant), descriptor('all', '')], end: [] }];
}

/** Decides arrivals in the given order, whose times are known only up to `precisionMicros`. */
export async function decide(
  policy: PolicySet,
  list: readonly Arrival[],
  precisionMicros: number,
  before?: PolicySet,
) {
  const columns = new Columns();
  const at = columns.indexOf('INDEX');
  const status = columns.indexOf('RESPONSE_CODE');
  const decided: RequestVerdict[] = [];
  const replay = new Replay({
    after: policy,
    before,
    callsOf: (values) => callsOf(list[Number(values[at])] as Arrival),
    columns,
    groups: [new GroupTally('tenant', undefined)],
    holdNames: { metadataKey: 'hold', entry: 'hold' },
    warmMicros: 0,
    onVerdict: (verdict) => decided.push(verdict),
  });
  await replay.add(
    list.map(({ micros, wasDenied }, index) => {
      const values = columns.operators.map((): string | undefined => undefined);
      values[at] = String(index);
      values[status] = wasDenied ? '429' : '200';
      return { startMicros: Math.floor(micros / precisionMicros) * precisionMicros, precisionMicros, values };
    }),
  );
  replay.finish();
  return { decided, tally: replay.tally };
}

/** Returns the counts that the log determines only up to an interval: of all requests, rules and groups. */
export function countsOf({ tally }: { readonly tally: Tally }): ReadonlyMap<string, readonly Interval[]> {
  const all: readonly (readonly [string, Affected])[] = [
    ['', tally.total()],
    ...tally.rules([], false).map((rule) => [rule.rule, rule] as const),
    ...tally.groups.flatMap((groups) =>
      groups.report(10).shown.map((group) => [`tenant ${group.value}`, group] as const),
    ),
  ];
  return new Map(
    all.map(([name, { deniedAfter, newlyDenied, newlyAllowed }]) => [
      name,
      [deniedAfter, newlyDenied, newlyAllowed],
    ]),
  );
}

const NONE: Interval = { least: 0, most: 0 };

/** Returns where a replay of a log contradicts the real decisions, although the log does not leave them open. */
export async function contradictions(
  policy: PolicySet,
  list: readonly Arrival[],
  {
    precisionMicros,
    reversed,
    before,
  }: {
    readonly precisionMicros: number;
    readonly reversed: boolean;
    readonly before?: PolicySet | undefined;
  },
): Promise<readonly string[]> {
  const exact = await decide(policy, list, 1, before);
  const byArrival = new Map(list.map((arrival, at) => [arrival, exact.decided[at]]));
  // Requests of the same tick come in any order.
  const tickOf = ({ micros }: Arrival): number => Math.floor(micros / precisionMicros);
  const logged = (reversed ? list.toReversed() : list).toSorted((one, other) => tickOf(one) - tickOf(other));
  const replayed = await decide(policy, logged, precisionMicros, before);
  const found: string[] = [];
  for (const [at, verdict] of replayed.decided.entries())
    if (verdict.open === undefined && verdict.denied !== byArrival.get(logged[at] as Arrival)?.denied)
      found.push(`request ${at} of the log: ${verdict.denied ? 'denied' : 'allowed'}`);
  const counts = countsOf(replayed);
  for (const [name, intervals] of countsOf(exact))
    for (const [at, { least, most }] of intervals.entries()) {
      // Without a range: which limit of a chain paid before or after the change.
      if (at > 0 && name.includes('[')) continue;
      // Requests that the log leaves open are those of the last limit of a chain, so the others may have none.
      const range = counts.get(name)?.[at] ?? NONE;
      if (range.least > most || range.most < least)
        found.push(`${name}: ${range.least}–${range.most} instead of ${least}–${most}`);
      else if (before === policy && at > 0 && range.most > 0)
        found.push(`${name}: ${range.least}–${range.most} change with the same policy`);
    }
  return found;
}
