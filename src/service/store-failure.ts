import type { BucketStore, TakeOutcome } from '../limiter/bucket-store.js';
import type { Decided } from './answer.js';
import type { DecisionObserver } from './decision-observer.js';
import type { PlannedDescriptor, PlannedTake } from './plan.js';

/** `deny` cannot know more than that the caller should come back a little later. */
const DENY_OUTCOME: TakeOutcome = { limited: true, remaining: 0, waitMicros: 1_000_000 };

/** Whether rules in force that answer `deny` deny the request: one of them, or all of its quotas. */
function isDenied(takes: readonly PlannedTake[]): boolean {
  const denies = (take: PlannedTake): boolean => take.onStoreFailure === 'deny';
  const quotas = takes.filter((take) => take.enforcement === 'quota');
  return (
    takes.some((take) => take.enforcement === 'enforce' && denies(take)) ||
    (quotas.length > 0 && quotas.every(denies))
  );
}

/**
 * Decides a request whose store could not, by each rule's `on_store_failure`. A `deny` that is in force decides; else any `error`
 * leaves the request undecided (undefined: the call becomes UNAVAILABLE, so that Envoy's `failure_mode_deny` decides); else `local`
 * rules take from `local`, a store in memory, and `allow` rules say nothing.
 */
export function decideWithoutStore(
  planned: readonly PlannedDescriptor[],
  local: BucketStore,
  observer: DecisionObserver,
): readonly Decided[] | undefined {
  const takes = planned.flatMap(({ take }) => (take === undefined ? [] : [take]));
  for (const take of takes) observer.storeFailed(take.onStoreFailure);
  const denied = isDenied(takes);
  if (!denied && takes.some((take) => take.onStoreFailure === 'error')) return undefined;
  const outcomes = new Map<PlannedTake, TakeOutcome>();
  for (const take of takes) {
    if (take.onStoreFailure === 'deny') outcomes.set(take, DENY_OUTCOME);
  }
  // A denied request takes nothing, so local buckets are not even asked then.
  const localTakes = denied ? [] : takes.filter((take) => take.onStoreFailure === 'local');
  if (localTakes.length > 0) {
    const result = local.take(localTakes, Number.POSITIVE_INFINITY);
    if (!Array.isArray(result)) throw new Error('the local store must answer at once');
    for (const [index, take] of localTakes.entries()) outcomes.set(take, result[index] as TakeOutcome);
  }
  return planned.map((one) => ({
    planned: one,
    outcome: one.take === undefined ? undefined : outcomes.get(one.take),
  }));
}
