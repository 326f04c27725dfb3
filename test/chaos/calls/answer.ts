import { CODE, type DescriptorStatus, type RateLimitResponse } from '../../../src/codec/messages.js';
import { STATUS } from '../../../src/grpc/grpc-server.js';
import type { Bucket } from './buckets.js';

/**
 * Kind of an answer: decided by Redis (or by local buckets, which look the same to a caller), answered by
 * `on_store_failure`, denied without a decision because weir had no time or capacity, or wrong.
 */
export type Answer =
  | { readonly kind: 'admitted' | 'policy' | 'unseen' }
  /** `short`: the buckets that had too few tokens. */
  | { readonly kind: 'denied'; readonly short: readonly Bucket[] }
  | { readonly kind: 'wrong'; readonly why: string };

/** Statuses of calls that Redis could not decide. */
const STATED: readonly number[] = [STATUS.UNAVAILABLE, STATUS.DEADLINE_EXCEEDED];

const wrong = (why: string): Answer => ({ kind: 'wrong', why });

/** Classifies the answer to a call for the buckets `asked`, in that order. */
export function readAnswer(
  asked: readonly Bucket[],
  status: number,
  details: string,
  response: RateLimitResponse | undefined,
): Answer {
  if (status !== STATUS.OK) {
    return STATED.includes(status) ? { kind: 'policy' } : wrong(`grpc-status ${status}: ${details}`);
  }
  if (response === undefined) return wrong('no message');
  const { statuses, overallCode } = response;
  if (statuses.length !== asked.length) return wrong(`${statuses.length} statuses for ${asked.length}`);
  for (const [at, { currentLimit }] of statuses.entries()) {
    const { name, maxTokens } = asked[at] as Bucket;
    if (currentLimit === undefined) continue;
    if (currentLimit.name !== name || currentLimit.requestsPerUnit !== maxTokens) {
      return wrong(
        `asked for ${name} (${maxTokens}), told of ${currentLimit.name} (${currentLimit.requestsPerUnit}): ` +
          'an answer that belongs to another call',
      );
    }
  }
  const isUnseen = ({ currentLimit }: DescriptorStatus): boolean => currentLimit === undefined;
  const over = statuses.flatMap((one, at) => (one.code === CODE.OVER_LIMIT ? [at] : []));
  if ((overallCode === CODE.OVER_LIMIT) !== over.length > 0) {
    return wrong(`overall code ${overallCode}, ${over.length} statuses are OVER_LIMIT`);
  }
  if (over.length === 0) return { kind: statuses.some(isUnseen) ? 'policy' : 'admitted' };
  if (over.some((at) => isUnseen(statuses[at] as DescriptorStatus))) return { kind: 'unseen' };
  return { kind: 'denied', short: over.map((at) => asked[at] as Bucket) };
}
