import { test } from '@jest/globals';
import fc from 'fast-check';
import type { Descriptor } from '../../../src/codec/messages.js';
import type { PolicySet } from '../../../src/policy/policy-set.js';
import type { RequestVerdict } from '../../../src/replay/decide/verdict.js';
import type { RequestCalls } from '../../../src/replay/envoy/route-table.js';
import { Columns } from '../../../src/replay/log/columns.js';
import { Replay } from '../../../src/replay/replay.js';
import type { Affected, Interval } from '../../../src/replay/report/report.js';
import { GroupTally } from '../../../src/replay/tally/group-tally.js';
import type { Tally } from '../../../src/replay/tally/tally.js';
import { expectAtLeast, expectAtMost, expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { setOf } from '../../support/policy/policies.js';

const START_MICROS = 1_700_000_000_000_000;

interface Arrival {
  readonly micros: number;
  readonly tenant: string;
  readonly hits: number;
  readonly wasDenied: boolean;
}

const arrivals = fc
  .record({
    precisionMicros: fc.constantFrom(1, 1000, 50_000, 1_000_000),
    /** Whether all requests have one hit, as nearly all do. */
    single: fc.boolean(),
    gaps: fc.array(
      fc.record({
        gapMicros: fc.oneof(fc.nat(2000), fc.nat(200_000), fc.nat(3_000_000)),
        tenant: fc.constantFrom('a', 'b'),
        hits: fc.constantFrom(1, 2, 3),
        wasDenied: fc.boolean(),
      }),
      { minLength: 1, maxLength: 60 },
    ),
  })
  .map(({ precisionMicros, single, gaps }) => {
    let micros = START_MICROS;
    const list = gaps.map(({ gapMicros, tenant, hits, wasDenied }): Arrival => {
      micros += gapMicros;
      return { micros, tenant, hits: single ? 1 : hits, wasDenied };
    });
    return { precisionMicros, list };
  });

const limits = fc.oneof(
  fc
    .tuple(
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom('100ms', '1s', '2s'),
    )
    .map(
      ([max, tokens, every]) =>
        `token_bucket: { max_tokens: ${max}, tokens_per_fill: ${tokens}, fill_interval: ${every} }`,
    ),
  fc
    .tuple(fc.integer({ min: 1, max: 6 }), fc.constantFrom('second', 'minute'))
    .map(([requests, unit]) => `requests_per_unit: ${requests}, unit: ${unit}`),
);

function policySet(ofTenant: string, ofAll: string | undefined): PolicySet {
  const all = ofAll === undefined ? '' : `  - key: all\n    rate_limit: { ${ofAll} }\n`;
  return setOf(`domain: shop\ndescriptors:\n  - key: tenant\n    rate_limit: { ${ofTenant} }\n${all}`);
}

function callsOf({ tenant, hits }: Arrival): readonly RequestCalls[] {
  const descriptor = (key: string, value: string): Descriptor => {
    return { entries: [{ key, value }], limit: undefined, hitsAddend: hits, isNegativeHits: false };
  };
  return [{ domain: 'shop', start: [descriptor('tenant', tenant), descriptor('all', '')], end: [] }];
}

/** Decides arrivals in the given order, whose times are known only up to `precisionMicros`. */
async function decide(policy: PolicySet, list: readonly Arrival[], precisionMicros: number) {
  const columns = new Columns();
  const at = columns.indexOf('INDEX');
  const status = columns.indexOf('RESPONSE_CODE');
  const decided: RequestVerdict[] = [];
  const replay = new Replay({
    after: policy,
    before: undefined,
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
function countsOf({ tally }: { readonly tally: Tally }): ReadonlyMap<string, readonly Interval[]> {
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

test('every verdict and number is the one of the real order and times, or the log leaves it open', async () => {
  await fc.assert(
    fc.asyncProperty(
      arrivals,
      limits,
      fc.option(limits, { nil: undefined }),
      fc.boolean(),
      async ({ precisionMicros, list }, ofTenant, ofAll, reversed) => {
        const policy = policySet(ofTenant, ofAll);
        const exact = await decide(policy, list, 1);
        const byArrival = new Map(list.map((arrival, at) => [arrival, exact.decided[at]]));
        // Requests of the same tick come in any order.
        const tickOf = ({ micros }: Arrival): number => Math.floor(micros / precisionMicros);
        const logged = (reversed ? list.toReversed() : list).toSorted(
          (one, other) => tickOf(one) - tickOf(other),
        );
        const replayed = await decide(policy, logged, precisionMicros);
        for (const [at, verdict] of replayed.decided.entries())
          if (verdict.open === undefined)
            expectSame(verdict.denied, byArrival.get(logged[at] as Arrival)?.denied);
        const counts = countsOf(replayed);
        for (const [name, intervals] of countsOf(exact))
          for (const [at, { least, most }] of intervals.entries()) {
            expectAtMost(counts.get(name)?.[at]?.least, most);
            expectAtLeast(counts.get(name)?.[at]?.most, least);
          }
      },
    ),
    runs(2000),
  );
});
