import { CODE, type DescriptorStatus } from '../../../src/codec/messages.js';
import { STATUS } from '../../../src/grpc/grpc-server.js';
import type { Bucket } from './buckets.js';
import type { Reply } from './paced-client.js';

/**
 * Kind of an answer: decided by Redis (or by local buckets, which look the same to a caller), answered by
 * `on_store_failure`, denied without a decision because weir had no time or capacity, or wrong.
 */
export type Answer =
  | { readonly kind: 'allowed' | 'by-policy' | 'undecided-denial' }
  /** `empty`: the buckets that had too few tokens. */
  | { readonly kind: 'denied'; readonly empty: readonly Bucket[] }
  | { readonly kind: 'wrong'; readonly why: string };

/** Statuses of calls without a decision from Redis. */
const UNDECIDED_STATUSES: readonly number[] = [STATUS.UNAVAILABLE, STATUS.DEADLINE_EXCEEDED];

const wrong = (why: string): Answer => ({ kind: 'wrong', why });

/** Classifies the answer to a call for the buckets `requested`, in that order. */
export function readAnswer(
  requested: readonly Bucket[],
  { status, details, response, malformed }: Omit<Reply, 'sentMs' | 'endMs'>,
): Answer {
  if (malformed !== undefined) return wrong(malformed);
  if (status !== STATUS.OK) {
    return UNDECIDED_STATUSES.includes(status)
      ? { kind: 'by-policy' }
      : wrong(`grpc-status ${status}: ${details}`);
  }
  if (response === undefined) return wrong('no message');
  const { statuses, overallCode } = response;
  // weir gives up a request that finds no capacity: the answer has no statuses. All domains enforce limits.
  if (statuses.length === 0 && overallCode === CODE.OVER_LIMIT) return { kind: 'undecided-denial' };
  if (statuses.length !== requested.length)
    return wrong(`${statuses.length} statuses for ${requested.length}`);
  for (const [at, { currentLimit }] of statuses.entries()) {
    const { name, maxTokens } = requested[at] as Bucket;
    if (currentLimit === undefined) continue;
    if (currentLimit.name !== name || currentLimit.requestsPerUnit !== maxTokens) {
      return wrong(
        `an answer that belongs to another call: it has the limit ${currentLimit.name} ` +
          `(${currentLimit.requestsPerUnit}) instead of ${name} (${maxTokens})`,
      );
    }
  }
  const isUndecided = ({ currentLimit }: DescriptorStatus): boolean => currentLimit === undefined;
  const over = statuses.flatMap((one, at) => (one.code === CODE.OVER_LIMIT ? [at] : []));
  if ((overallCode === CODE.OVER_LIMIT) !== over.length > 0) {
    return wrong(`overall code ${overallCode}, ${over.length} statuses are OVER_LIMIT`);
  }
  if (over.length === 0) return { kind: statuses.some(isUndecided) ? 'by-policy' : 'allowed' };
  if (over.some((at) => isUndecided(statuses[at] as DescriptorStatus))) return { kind: 'undecided-denial' };
  return { kind: 'denied', empty: over.map((at) => requested[at] as Bucket) };
}
