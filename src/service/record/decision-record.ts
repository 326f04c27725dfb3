import type { ExceededBound } from '../../codec/messages.js';
import type { Entry } from '../../limiter/entry.js';
import type { HoldEffect, HoldId } from '../../limiter/holds/hold.js';
import type { MatchBound } from '../../policy/match-work.js';

/** A record of one request in the sampled decision log; docs/operate/decision-log.md describes the format. */
export interface DecisionRecord {
  /** The fraction of such requests that is written. */
  readonly sample: number;
  /** When the request was decided, in microseconds since 1970: on the clock of the store, if the store decided. */
  readonly wallMicros: number;
  /** {@link RequestTrace.traceId}; '' if the caller sent none. */
  readonly traceId: string;
  /** {@link Caller.requestName}. */
  readonly request: string;
  readonly domain: string;
  readonly code: 'OK' | 'OVER_LIMIT';
  /** Why the request was not decided; absent if it was. */
  readonly reason: UndecidedReason | undefined;
  /** Microseconds from the first decoded byte to the answer, including the store. */
  readonly micros: number;
  readonly descriptors: readonly DescriptorRecord[];
  /** Number of omitted descriptors. */
  readonly moreDescriptors: number;
}

export function codeName(overLimit: boolean): 'OK' | 'OVER_LIMIT' {
  return overLimit ? 'OVER_LIMIT' : 'OK';
}

/**
 * The reason why a request got an answer without a decision. It exceeds a bound of requests: see {@link ExceededBound},
 * `limits` (MAX_LIMITS), or {@link MatchBound}. Or its hold token would be too long (`hold_token`), it waited too long
 * for its turn (`late`), or it found a queue full (`full`).
 */
export type GivenUpReason = ExceededBound | 'limits' | MatchBound | 'hold_token' | 'late' | 'full';

/** Reasons for an answer without a decision: the domain has no policy, or the request was given up. */
export type UndecidedReason = 'unknown_domain' | GivenUpReason;

/**
 * Effect of a descriptor on a hold, or the result of its hold token:
 * - `placed`: the descriptor placed the hold.
 * - `settled`: the token ended the hold.
 * - `unknown`: there is no such hold.
 * - `malformed`: the entry is not a hold token.
 * - `waiting`: the store was unavailable, so weir tries again.
 * - `lost`: weir does not try again, because too many ends wait, or because a repeated end could settle another hold.
 */
export type HoldEvent = HoldEffect | 'malformed' | 'waiting' | 'lost';

/** Maximum number of holds per descriptor in a record. */
export const MAX_RECORDED_HOLDS = 32;

/** A hold that a descriptor placed, or that its hold token names. */
export interface HoldRecord {
  readonly event: HoldEvent;
  /** Absent if it is unknown, as of the oldest hold of a bucket. */
  readonly id?: HoldId;
  /** `Rule.path`; absent if the rule is unknown. */
  readonly rule?: string;
  /** Hits of the hold; absent if there is no such hold. */
  readonly hits?: number;
  /** Reported use; absent if it is unknown or not the end of a hold. */
  readonly used?: number | undefined;
}

/** A descriptor of a {@link DecisionRecord}. */
export interface DescriptorRecord {
  /** Entries after `derive`, with secrets redacted. */
  readonly entries: readonly Entry[];
  /** Entries as received, with secrets redacted; absent if `derive` changed nothing. */
  readonly sent: readonly Entry[] | undefined;
  /** Number of entries omitted from either list. */
  readonly moreEntries: number;
  readonly hits: number;
  /** Whether the hits are given back (`is_negative_hits`). */
  readonly refund: boolean;
  /** Limit override; `unit` is a number of envoy.type.v3.RateLimitUnit. */
  readonly override: { readonly requestsPerUnit: number; readonly unit: number } | undefined;
  /**
   * `Rule.path`, `override`, or '' if nothing matched. If several limits matched, the rule of the limit that the
   * answer shows.
   */
  readonly rule: string;
  /** Class of the caller in that limit (`priorities`); '' without classes. {@link limit} is what the class can use. */
  readonly className: string;
  readonly code: 'OK' | 'OVER_LIMIT';
  readonly limit: number | undefined;
  readonly remaining: number | undefined;
  /**
   * Whether the hits did not fit, but were allowed because of phase, shadow mode, `enforce_percent` or other quotas.
   */
  readonly wouldBeThrottled: boolean;
  /** `Rule.path` of the soft limits (`on_over`) that the hits did not fit into. */
  readonly overSoftLimits: readonly string[];
  /** Holds that the descriptor placed, or that its hold token names. */
  readonly holds: readonly HoldRecord[];
}

/** A sampled decision log, called once for each answered request. */
export interface DecisionLog {
  /** 0 if this request should not be logged, otherwise the fraction of such requests that is logged. */
  sample(denied: boolean): number;
  write(record: DecisionRecord): void;
}
