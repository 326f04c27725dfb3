import type { PolicyProvider } from '../../config/policy-provider.js';
import type { Clock } from '../../limiter/clock.js';
import { NO_SECRETS } from '../../policy/redact.js';
import type { Closers } from '../../runtime/closers.js';
import { TopBuckets } from '../../telemetry/top/top-buckets.js';
import type { SecretKeyLookup } from './redact-secrets.js';

/** How often what is counted is looked at: how many samples to take, and whether a slice of time is over. */
const TICK_MS = 1000;

/** Keeps the buckets that most is asked of, `capacity` (TOP_BUCKETS) in each sketch; undefined for 0. */
export function openTop(capacity: number, clock: Clock, closers: Closers): TopBuckets | undefined {
  if (capacity === 0) return undefined;
  const nowMicros = (): number => clock.monotonicMicros();
  const top = new TopBuckets({ capacity, nowMicros, random: Math.random });
  const timer = setInterval(() => top.tick(), TICK_MS);
  timer.unref();
  closers.add(async () => clearInterval(timer));
  return top;
}

/** The secret keys of the policies in force. */
export function currentSecretKeys(policies: Pick<PolicyProvider, 'current'>): SecretKeyLookup {
  return (domain) => policies.current()?.domains.get(domain)?.secretKeys ?? NO_SECRETS;
}
