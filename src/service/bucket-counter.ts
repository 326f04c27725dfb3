import type { TakeItem, TakeOutcome } from '../limiter/bucket-store.js';
import type { DomainPolicy, Match } from '../policy/policy.js';
import type { Rule } from '../policy/rule.js';

/** What is counted of one take; see PlannedTake. */
export interface CountedTake extends Pick<TakeItem, 'key' | 'rate' | 'hits'> {
  readonly label: string;
  /** Undefined for a limit override. */
  readonly rule: Rule | undefined;
  readonly outcome: TakeOutcome | undefined;
}

/** Counts what is asked of single buckets. Called on the hot path: implementations look at few of the calls. */
export interface BucketCounter {
  /** Hits of a take, at least 1, were let through. */
  letThrough(policy: DomainPolicy, match: Match, take: CountedTake): void;
  /** A request was denied because of the bucket of a take. */
  denied(policy: DomainPolicy, match: Match, take: CountedTake): void;
  /** A request was denied because an operator blocks one of its descriptors. */
  blocked(policy: DomainPolicy, match: Match): void;
}
