/*
 * The cost of counting buckets for `/top`, for allowed and denied calls. decide.bench.ts measures it as a part of a
 * complete decision. To run it: `node build/test/bench/micro/top.bench.js [part of a name …]`.
 */

import { TopCounts } from '../../../src/admin/top/top-counts.js';
import { systemClock } from '../../../src/limiter/clock.js';
import type { CountedTake } from '../../../src/service/decision-observer.js';
import { TopBuckets } from '../../../src/telemetry/top/top-buckets.js';
import { entries, policyOf } from '../../support/policy/policies.js';
import { type MicroCase, runCases } from './measure.js';

/** Default of TOP_BUCKETS. */
const CAPACITY = 500;
const SECOND_MICROS = 1_000_000;
/** Number of calls between two readings of the clock. */
const CALLS_PER_CHECK = 4096;

const POLICY = policyOf(`
domain: bench
descriptors: [{ key: tenant, rate_limit: { token_bucket: { max_tokens: 10, fill_interval: 1s } } }]
`);

/** Counts calls without deciding them, and calls `tick` every second, as a server does. */
function counting(buckets: number, denied: boolean): MicroCase {
  return () => {
    const nowMicros = (): number => systemClock.monotonicMicros();
    const top = new TopBuckets({ capacity: CAPACITY, nowMicros, random: Math.random });
    const counts = new TopCounts(top);
    const match = POLICY.match(entries('tenant=acme'));
    const [rule] = match.rules;
    const rate = rule?.rate;
    if (rate === undefined) throw new Error('the policy has no limit');
    const keys = Array.from(
      { length: buckets },
      (_, at) => `5:bench6:tenant10:t${String(at).padStart(9, '0')}`,
    );
    const take = { key: '', rate, hits: 1, label: 'tenant', rule, outcome: undefined } satisfies CountedTake;
    let tickedMicros = nowMicros();
    return (call) => {
      // The step is a prime, so that consecutive calls use different buckets.
      take.key = keys[(call * 7919) % buckets] as string;
      if (denied) counts.denied(POLICY, match, take);
      else counts.allowed(POLICY, match, take);
      if (call % CALLS_PER_CHECK !== 0) return;
      if (nowMicros() - tickedMicros < SECOND_MICROS) return;
      tickedMicros = nowMicros();
      top.tick();
    };
  };
}

runCases(__filename, {
  'top, 1 bucket': counting(1, false),
  'top, 1,000 buckets': counting(1000, false),
  'top, 1,000,000 buckets': counting(1_000_000, false),
  'top, 1,000 buckets, denied': counting(1000, true),
});
