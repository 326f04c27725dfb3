import type { RedisReplyError } from '../connection/redis-error.js';
import type { TakeBatch } from '../take-batch.js';

/**
 * What becomes of a call that one server of several refused, so that it did nothing of it: `taken`, another one has it,
 * and ends it; `emptied`, its requests are in other calls; `held`, it waits for {@link InFlightCalls.reroute};
 * `failed`, nobody takes it.
 */
export type Redirect = (batch: TakeBatch, error: RedisReplyError) => 'taken' | 'emptied' | 'held' | 'failed';

/** A call that is sent on more often is going round in circles. */
export const MAX_REDIRECTIONS = 5;

/**
 * Whether a node of a Redis Cluster says that it does not serve these keys, or not now (Redis Cluster specification,
 * "Redirection and resharding").
 */
export function isRedirection({ message }: RedisReplyError): boolean {
  return /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN Hash slot not served)\b/.test(message);
}
