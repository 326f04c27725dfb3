import type { Entry } from '../limiter/entry.js';
import type { StoreFailureAnswer } from '../limiter/failure-policy.js';
import type { CompiledPolicy } from '../policy/compiled-policy.js';
import type { Match } from '../policy/policy.js';
import type { RuleMetrics } from '../policy/rule.js';
import type { DecisionLine } from './record/decision-line.js';
import type { GivenUpReason } from './record/decision-record.js';
import type { MatchedTake } from './request-context.js';

/** Receives the decisions of a service. */
export interface DecisionObserver {
  readonly counts: DecisionCounts;
  readonly warnings: DecisionWarnings;
  /** Absent if no per-bucket counts are needed. */
  readonly buckets?: BucketCounter | undefined;
}

/**
 * The values of one series of {@link DecisionCounts}. {@link DecisionWarnings} records in it which warnings it has
 * logged.
 */
export type CountedSeries = number[];

/** Counts decisions. The hot path calls it, so implementations do nothing but count. */
export interface DecisionCounts {
  /**
   * Returns the counter of a limit. `label`: `Rule.path`, or `override`. `stat`: `Rule.statName`, or the name that the
   * reference gives a limit override, which callers choose (`fromCaller`).
   */
  counterOf(domain: string, label: string, stat: string, fromCaller: boolean): RuleMetrics;
  /** Counts a descriptor of a request that passed over the soft limit `rule`. `marked`: the request was marked. */
  softLimitExceeded(domain: string, rule: string, marked: boolean): void;
  /** Counts a descriptor of an allowed request that did not fit into `rule`, and for which another limit paid. */
  spilled(domain: string, rule: string): void;
  /** Counts `hits` of a charge that exceeded the `max_debt` of `rule`. */
  uncollected(domain: string, rule: string, hits: number): void;
  /** Counts a descriptor that matched no rule. */
  unmatched(domain: string, entries: readonly Entry[]): CountedSeries;
  /** Counts a request, with its number of descriptors, for a domain that has no policy. */
  unknownDomain(domain: string, descriptors: number): CountedSeries;
  /** Counts a request that got an answer without a decision. */
  requestGivenUp(domain: string, why: GivenUpReason): void;
  /** Counts a request that the store could not decide. `reason` is the reason of the StorageError. */
  storeError(reason: string): void;
  /** Counts a rule for which the failure policy `policy` answered. */
  storeFailed(policy: StoreFailureAnswer): void;
  readonly holds: HoldCounts;
  readonly reference: ReferenceCounts;
}

/** Counts holds. For a concurrency limit, hits are slots. */
export interface HoldCounts {
  /** Counts a hold of `hits` that `rule` placed. */
  placed(domain: string, rule: string, hits: number): void;
  /** Counts a settled hold of `held` hits. `used` is undefined if the use is unknown. */
  settled(domain: string, rule: string, held: number, used: number | undefined): void;
  /** Counts a hold that weir gave back: its call was canceled or got no answer, or an operator released it. */
  released(domain: string, rule: string, hits: number): void;
  /**
   * Counts a hold token that settled no hold. `unknown`: the hold was settled before, has expired, or never existed.
   * `malformed`: the entry is not a hold token of weir. `unverified`: the store was unavailable, and the token may be
   * invented.
   */
  unsettled(domain: string, kind: 'unknown' | 'malformed' | 'unverified'): void;
  /** Counts a settlement that was given up because the store was unavailable, except those of unverified tokens. */
  lost(domain: string, rule: string): void;
}

/** The statistics of envoyproxy/ratelimit. */
export interface ReferenceCounts {
  /** Counts a request that SHADOW_MODE allowed and that would be OVER_LIMIT otherwise. */
  globalShadow(): void;
  /**
   * Counts a request without a decision: because it is invalid or no policy is loaded (`service`), or because the store
   * failed (`redis`).
   */
  failed(cause: 'service' | 'redis'): void;
}

/** Logs throttled warnings about decisions and, at level debug, each decision. */
export interface DecisionWarnings {
  /** Warnings about requests that are allowed because no limit applies. */
  readonly unlimited: {
    /** Warns that a descriptor matched no rule; not called if the policy declares this as intended. */
    unmatched(domain: string, entries: readonly Entry[], series: CountedSeries): void;
    unknownDomain(domain: string, series: CountedSeries): void;
  };
  /** Warns about requests of `hits` for rules with `allow_debt`; `refund`: the request gives the hits back. */
  readonly charges: { asked(domain: string, rule: string, hits: number, refund: boolean): void };
  /**
   * Warns that a descriptor, or several descriptors with the same bucket, requested more hits from `rule` than its
   * `limit` can ever hold. `about` is the rule, or the policy for an override, and stays the same object until a
   * reload.
   */
  neverPasses(domain: string, rule: string, hits: number, limit: number, about: object): void;
  /**
   * Warns that a request got an answer without a decision. The request was `denied`, or no rule of the domain could
   * deny it.
   */
  givenUp(domain: string, why: GivenUpReason, denied: boolean): void;
  /** Whether {@link logDecision} should be called. */
  readonly logsDecisions: boolean;
  logDecision(line: DecisionLine): void;
}

/** The fields of a take that are counted. */
export type CountedTake = Pick<MatchedTake, 'key' | 'rate' | 'hits' | 'rulePath' | 'rule' | 'outcome'>;

/** What is counted by bucket: hits that were allowed, and requests that were denied because of the bucket. */
export type BucketMeasure = 'used' | 'denied';

/** Counts samples of hits and denials by bucket. */
export interface BucketCounter {
  /** Returns the number of hits, or of denials, that the given ones stand for; 0 if they are not in the sample. */
  readonly samplers: Readonly<Record<BucketMeasure, { take(hits: number): number }>>;
  /** Counts a take that a sampler has drawn. */
  count(measure: BucketMeasure, hits: number, policy: CompiledPolicy, match: Match, take: CountedTake): void;
}
