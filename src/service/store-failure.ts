import {
  type BucketStore,
  type LocalStore,
  StorageError,
  type Take,
  type TakeOutcome,
  type TakeResult,
} from '../limiter/bucket-store.js';
import { deniesRequest } from '../limiter/decide.js';
import { answerOf, type StoreFailureAnswer } from '../limiter/failure-policy.js';
import { BrokenInvariant } from '../runtime/invariant.js';
import { keepPayingTakes } from './answer/denial.js';
import type { DecisionCounts } from './decision-observer.js';
import { type DescriptorState, type MatchedTake, takesOf } from './request-context.js';
import { markNeverPassing } from './shared-bucket.js';

/**
 * Calls a store. If the store detects that its own state is broken, returns an error, as if the store were unavailable.
 * The last parameters are those of {@link BucketStore.take}. Calls `failed` before it throws an error.
 */
export function askStore<Item extends Take>(
  store: { take(items: readonly Item[], ...rest: TakeParameters): TakeResult | Promise<TakeResult> },
  items: readonly Item[],
  deadlineMicros: number,
  mayWait = true,
  failed?: () => void,
): TakeResult | Promise<TakeResult> {
  try {
    return store.take(items, deadlineMicros, mayWait);
  } catch (error) {
    if (error instanceof BrokenInvariant) return new StorageError('broken', error.message);
    failed?.();
    throw error;
  }
}

type TakeParameters = Parameters<BucketStore['take']> extends [unknown, ...infer Rest] ? Rest : never;

/**
 * Returns the outcome of `deny`. Nobody knows when the request would be allowed, so the caller should retry after 1 s.
 * The hits count as hits over the limit.
 */
function denyOutcome({ rate, hits }: MatchedTake): TakeOutcome {
  const used = rate.assumedUsed(hits);
  const seen = { remaining: 0, waitMicros: 1_000_000, used, uncollectedHits: 0, cached: false };
  return { overLimit: true, ...seen, bucketUnknown: true };
}

/** Returns whether enforced rules with `deny` deny the request: one limit, or all of its quotas. */
function isDenied(takes: readonly MatchedTake[]): boolean {
  return deniesRequest(
    takes,
    takes.map(({ onStoreFailure }) => ({ overLimit: onStoreFailure === 'deny' })),
  );
}

/**
 * Returns the failure policy that applies to a take. The call must not fail because of a rule that cannot deny this
 * request, so `error` becomes `allow` for such a rule. A rule cannot deny in the phases monitoring and grace period, in
 * shadow mode, or if `enforce_percent` excludes the request. The last limit of a chain (`then`) decides for the whole
 * chain.
 */
function policyOf({ enforcement, onStoreFailure }: MatchedTake): StoreFailureAnswer {
  const isIdle = enforcement === 'observe' || enforcement === 'spill';
  return isIdle && onStoreFailure === 'error' ? 'allow' : answerOf(onStoreFailure);
}

/**
 * Decides a request without the store, according to the `on_store_failure` of each rule, and sets the outcomes. If an
 * enforced rule has `deny`, the request is denied. Otherwise, if an enforced rule has `error`, the request stays
 * undecided: the function returns false, the call fails with UNAVAILABLE, and Envoy's `failure_mode_deny` decides.
 * Otherwise, rules with `local` use the buckets in `local`, which contain their shares, and rules with `allow` have no
 * outcome.
 */
export function decideWithoutStore(
  states: readonly DescriptorState[],
  local: LocalStore,
  counts: DecisionCounts,
): boolean {
  const takes = takesOf(states);
  for (const take of takes) if (take.enforcement !== 'spill') counts.storeFailed(policyOf(take));
  const denied = isDenied(takes);
  if (!denied && takes.some((take) => policyOf(take) === 'error')) {
    keepPayingTakes(states);
    return false;
  }
  // A denied request uses no tokens, so weir does not use local buckets for it.
  const localTakes = denied ? [] : takes.filter((take) => policyOf(take) === 'local');
  const localOutcomes: readonly TakeOutcome[] = localTakes.length > 0 ? local.take(localTakes) : [];
  let nextLocal = 0;
  for (const take of takes) {
    if (take.onStoreFailure === 'deny') take.outcome = denyOutcome(take);
    else if (policyOf(take) === 'local') take.outcome = localOutcomes[nextLocal++];
  }
  if (localTakes.length > 1) markNeverPassing(localTakes);
  return true;
}
