import type { LocalStore, TakeOutcome } from '../limiter/bucket-store.js';
import { deniesRequest } from '../limiter/decide.js';
import { answerOf, type StoreFailureAnswer } from '../limiter/failure-policy.js';
import type { DecisionCounts } from './decision-observer.js';
import { type Decision, type PlannedTake, takesOf } from './plan.js';
import { markNeverPassing } from './shared-bucket.js';

/**
 * `deny` cannot know more than that the caller should come back a little later. Its hits count as those past a used up
 * limit.
 */
function denyOutcome({ rate, hits }: PlannedTake): TakeOutcome {
  const used = rate.assumedUsed(hits);
  const seen = { remaining: 0, waitMicros: 1_000_000, used, forgiven: 0, cached: false };
  return { limited: true, ...seen, bucketUnknown: true };
}

/** Whether rules in force that answer `deny` deny the request: one of them, or all of its quotas. */
function isDenied(takes: readonly PlannedTake[]): boolean {
  return deniesRequest(
    takes,
    takes.map(({ onStoreFailure }) => ({ limited: onStoreFailure === 'deny' })),
  );
}

/**
 * What a rule answers. One that denies nothing in this request (monitoring, grace period, `shadow_mode`, SHADOW_MODE,
 * not drawn by `enforce_percent`) only looks, and what it sees is not worth the call: its `error` says nothing, as
 * `allow` does.
 */
function policyOf({ enforcement, onStoreFailure }: PlannedTake): StoreFailureAnswer {
  return enforcement === 'observe' && onStoreFailure === 'error' ? 'allow' : answerOf(onStoreFailure);
}

/**
 * Decides a request whose store could not, by each rule's `on_store_failure`: fills the outcomes. A `deny` that is in
 * force decides; else any `error` of a rule in force leaves the request undecided (false: the call becomes UNAVAILABLE,
 * so that Envoy's `failure_mode_deny` decides); else `local` rules take from `local`, which knows their shares, and
 * `allow` rules say nothing.
 */
export function decideWithoutStore(
  decisions: readonly Decision[],
  local: LocalStore,
  counts: DecisionCounts,
): boolean {
  // What a candidate would say then, nobody needs to know.
  const takes = takesOf(decisions).filter(({ ruleEnforcement }) => ruleEnforcement !== 'candidate');
  for (const take of takes) counts.storeFailed(policyOf(take));
  const denied = isDenied(takes);
  if (!denied && takes.some((take) => policyOf(take) === 'error')) return false;
  // A denied request takes nothing, so local buckets are not even asked then.
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
