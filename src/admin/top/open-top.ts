import type { PolicyProvider } from '../../config/policy-provider.js';
import type { Clock } from '../../limiter/clock.js';
import { NO_SECRETS } from '../../policy/redact.js';
import type { Closers } from '../../runtime/closers.js';
import { TopBuckets } from '../../telemetry/top/top-buckets.js';
import type { SecretKeyLookup } from './top-answer.js';

/** Milliseconds between two adjustments of the sampling rate and of the time slices. */
const TICK_MS = 1000;

/**
 * Opens counters for the most active buckets, with `capacity` (TOP_BUCKETS) buckets in each sketch. Returns undefined
 * for 0.
 */
export function openTop(capacity: number, clock: Clock, closers: Closers): TopBuckets | undefined {
  if (capacity === 0) return undefined;
  const nowMicros = (): number => clock.monotonicMicros();
  const top = new TopBuckets({ capacity, nowMicros, random: Math.random });
  const timer = setInterval(() => top.tick(), TICK_MS);
  timer.unref();
  closers.add(async () => clearInterval(timer));
  return top;
}

export function currentSecretKeys(policies: Pick<PolicyProvider, 'current'>): SecretKeyLookup {
  return (domain) => policies.current()?.domains.get(domain)?.secretKeys ?? NO_SECRETS;
}
