import type { TakeItem, TakeOutcome } from '../limiter/bucket-store.js';
import type { ControlKind } from '../limiter/control.js';
import type { Entry } from '../limiter/entry.js';
import type { StoreFailureAnswer } from '../limiter/failure-policy.js';
import type { DomainPolicy, Match } from '../policy/policy.js';
import type { PlannedTake } from './plan.js';
import type { DecisionLine } from './record/decision-line.js';

/** Who is told of decisions. */
export interface DecisionObserver {
  readonly counts: DecisionCounts;
  readonly warnings: DecisionWarnings;
  /** Absent where nobody wants to know of single buckets. */
  readonly buckets?: BucketCounter | undefined;
}

/** The numbers of one series of {@link DecisionCounts}; {@link DecisionWarnings} keeps in it what it has told of. */
export type CountedSeries = number[];

/** Counts decisions. Called on the hot path: implementations only count. */
export interface DecisionCounts {
  /**
   * A descriptor was decided by `rule` (`Rule.path`, `override`, `block` or `allow`). `wouldBeThrottled`: it did not
   * fit, but its phase or shadow mode let it pass.
   */
  decided(domain: string, rule: string, overLimit: boolean, wouldBeThrottled: boolean): void;
  /** A block or an exemption decided a descriptor. {@link decided} is told, too. */
  controlled(domain: string, kind: ControlKind): void;
  /**
   * The `candidate` of the node at `rule` saw the same descriptor: what it was answered, and what the candidate would
   * have.
   */
  candidate(domain: string, rule: string, liveOverLimit: boolean, candidateOverLimit: boolean): void;
  /** `hits` of a charge went past the `max_debt` of `rule`. */
  forgiven(domain: string, rule: string, hits: number): void;
  /** A descriptor matched no rule. */
  unmatched(domain: string, entries: readonly Entry[]): CountedSeries;
  /** A request named a domain that no policy has, in so many descriptors. */
  unknownDomain(domain: string, descriptors: number): CountedSeries;
  /** Matching a request took more work than it may cause. */
  matchExceeded(domain: string): void;
  /** A request waited for its turn until there was no time left (`late`), or could not even wait (`full`). */
  requestGivenUp(domain: string, why: 'late' | 'full'): void;
  /** The store could not decide a request; `reason` is StorageError's. */
  storeError(reason: string): void;
  /** Then `policy` answered for one of its rules. */
  storeFailed(policy: StoreFailureAnswer): void;
  readonly reference: ReferenceCounts;
}

/** The statistics of the reference. */
export interface ReferenceCounts {
  /**
   * A descriptor was decided. `stat` is Match.statName, or for a limit override the name the reference gives it, which
   * callers choose (`fromCaller`): such series are bounded apart. `outcome` is undefined where nothing decided.
   * Unlimited and replaced rules count nothing. `shadowed`: it did not fit, but `shadow_mode` or the phase let it pass.
   */
  counted(
    stat: string,
    fromCaller: boolean,
    take: TakeItem,
    outcome: TakeOutcome | undefined,
    shadowed: boolean,
  ): void;
  /** SHADOW_MODE let a request pass that would be OVER_LIMIT. */
  globalShadow(): void;
  /** A request got no decision, for its own fault or for want of a policy (`service`), or for the store's (`redis`). */
  failed(cause: 'service' | 'redis'): void;
}

/** Logs what somebody should know of, seldom or once, and at level debug each decision. */
export interface DecisionWarnings {
  /** What passes because nothing limits it. */
  readonly unlimited: {
    /** A descriptor matched no rule, and the policy does not say that this is meant. */
    unmatched(domain: string, entries: readonly Entry[], series: CountedSeries): void;
    unknownDomain(domain: string, series: CountedSeries): void;
  };
  /** Requests for rules with `allow_debt`, for `hits`; `refund`: they give them back. */
  readonly charges: { asked(domain: string, rule: string, hits: number, refund: boolean): void };
  /**
   * A descriptor, or several that fall on one bucket, asked `rule` for more hits than its `limit` can ever hold.
   * `about` is the rule, or for an override the policy: one object for as long as that is in force.
   */
  neverPasses(domain: string, rule: string, hits: number, limit: number, about: object): void;
  /**
   * Matching a request took more work than it may cause, because of the value under `key`: it was `denied`, or no rule
   * in force could have matched.
   */
  matchExceeded(domain: string, key: string, denied: boolean): void;
  /** A request was answered before it was looked at: it was `denied`, or see above. */
  givenUp(domain: string, why: 'late' | 'full', denied: boolean): void;
  /** Whether {@link logDecision} wants to be called at all. */
  logsDecisions(): boolean;
  logDecision(line: DecisionLine): void;
}

/** What is counted of one take. */
export type CountedTake = Pick<PlannedTake, 'key' | 'rate' | 'hits' | 'label' | 'rule' | 'outcome'>;

/** Counts what is asked of single buckets. Called on the hot path: implementations look at few of the calls. */
export interface BucketCounter {
  /** Hits of a take, at least 1, were let through. */
  allowed(policy: DomainPolicy, match: Match, take: CountedTake): void;
  /** A request was denied because of the bucket of a take. */
  denied(policy: DomainPolicy, match: Match, take: CountedTake): void;
  /** A request was denied because an operator blocks one of its descriptors. */
  blocked(policy: DomainPolicy, match: Match): void;
}
