import type { RedisReplyError } from '../connection/redis-error.js';
import type { TakeBatch } from '../take-batch.js';

/**
 * Handles a call that one of several servers refused without executing it. The result `taken` means that another server
 * sends and ends it, and `emptied` that other calls contain its requests. `held` means that it waits for {@link
 * InFlightCalls.reroute}, and `failed` that no server accepts it.
 */
export type Redirect = (batch: TakeBatch, error: RedisReplyError) => 'taken' | 'emptied' | 'held' | 'failed';

/** Maximum number of redirections of a call, which bounds redirection loops. */
export const MAX_REDIRECTIONS = 5;

/**
 * Returns whether a node of a Redis Cluster reports that it does not serve these keys at the moment (Redis Cluster
 * specification, "Redirection and resharding").
 */
export function isRedirection({ message }: RedisReplyError): boolean {
  return /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN Hash slot not served)\b/.test(message);
}
