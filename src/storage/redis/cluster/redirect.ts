import type { RedisReplyError } from '../connection/redis-error.js';
import type { TakeBatch } from '../take-batch.js';

/**
 * Handles a call that one of several servers refused without executing it. Returns `taken` if another server has it and
 * ends it; `emptied` if its requests are in other calls; `held` if it waits for {@link InFlightCalls.reroute}; `failed`
 * if no server accepts it.
 */
export type Redirect = (batch: TakeBatch, error: RedisReplyError) => 'taken' | 'emptied' | 'held' | 'failed';

/** Maximum number of redirections of a call, which bounds redirection loops. */
export const MAX_REDIRECTIONS = 5;

/**
 * Returns whether a node of a Redis Cluster says that it does not serve these keys, or not now (Redis Cluster
 * specification, "Redirection and resharding").
 */
export function isRedirection({ message }: RedisReplyError): boolean {
  return /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN Hash slot not served)\b/.test(message);
}
