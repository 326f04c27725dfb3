import type { Entry } from '../../limiter/entry.js';
import type { ReportedControl } from '../controls/reported-control.js';

/** What a sampled log of decisions tells of one request; see docs/operate/decision-log.md, which is its format. */
export interface DecisionRecord {
  /** The share of such requests that is written. */
  readonly sample: number;
  /** {@link RequestTrace.traceId}; '' where the caller sent none. */
  readonly traceId: string;
  /** {@link Caller.requestName}. */
  readonly request: string;
  readonly domain: string;
  readonly code: 'OK' | 'OVER_LIMIT';
  /** Why nobody decided it; absent where somebody did. */
  readonly reason: UndecidedReason | undefined;
  /** From the first byte decoded to the answer, the store's time included. */
  readonly micros: number;
  readonly descriptors: readonly DescriptorRecord[];
  /** How many descriptors are left out. */
  readonly moreDescriptors: number;
}

/** The code of a decision as logs name it. */
export function codeName(overLimit: boolean): 'OK' | 'OVER_LIMIT' {
  return overLimit ? 'OVER_LIMIT' : 'OK';
}

/**
 * No policy has the domain; matching took too much work; the request waited too long, or could not even wait; the store
 * could not decide.
 */
export type UndecidedReason = 'unknown_domain' | 'match_budget_exceeded' | 'late' | 'full';

/** One descriptor of a {@link DecisionRecord}. */
export interface DescriptorRecord {
  /** After `derive`, secrets redacted. */
  readonly entries: readonly Entry[];
  /** As they were sent, secrets redacted; absent where `derive` changed nothing. */
  readonly sent: readonly Entry[] | undefined;
  /** How many entries are left out of either. */
  readonly moreEntries: number;
  readonly hits: number;
  /** Gives hits back (`is_negative_hits`). */
  readonly refund: boolean;
  /** Limit override; `unit` is a number of envoy.type.v3.RateLimitUnit. */
  readonly override: { readonly requestsPerUnit: number; readonly unit: number } | undefined;
  /**
   * `Rule.path`, `override`, or '' where nothing matched; of several limits the one that the answer shows; of a blocked
   * or exempted descriptor the one that it would have met.
   */
  readonly rule: string;
  readonly code: 'OK' | 'OVER_LIMIT';
  readonly limit: number | undefined;
  readonly remaining: number | undefined;
  /** It did not fit, and yet passed: by phase, shadow mode, percent, or the quotas beside it. */
  readonly wouldBeThrottled: boolean;
  /** What the `candidate` of the rule would have answered. */
  readonly candidate: 'OK' | 'OVER_LIMIT' | undefined;
  /** The block or exemption that decided it. */
  readonly control: ReportedControl | undefined;
}

/** A sampled log of decisions. Called once for each request that is answered. */
export interface DecisionLog {
  /** The share of requests like this one that is written, if it is to be written; else 0. */
  sample(denied: boolean): number;
  write(record: DecisionRecord): void;
}
