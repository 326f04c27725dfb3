import type { TakeItem, TakeOutcome } from '../limiter/bucket-store.js';
import type { ControlKind } from '../limiter/control.js';
import type { Entry } from '../limiter/entry.js';
import type { StoreFailureAnswer } from '../limiter/failure-policy.js';
import type { BucketCounter } from './bucket-counter.js';
import type { ToldControl } from './controls/told-control.js';

/** One line of the decision log; see docs/operate/logs.md. */
export interface DecisionLine {
  /** {@link Caller.requestName}: the same in all lines of one request; '' where nobody named it. */
  readonly request: string;
  readonly domain: string;
  /** The descriptor's entries after `derive`, secrets redacted. */
  readonly entries: readonly Entry[];
  /** How many entries are left out; absent for none. */
  readonly moreEntries?: number;
  /**
   * Of the limit that {@link remaining} is of: `Rule.path`, `override`, the kind of {@link control}, or '' where
   * nothing matched, and where another descriptor is blocked.
   */
  readonly rule: string;
  /** Why nothing matched: no policy has the domain, no rule these entries, or matching took too much work. */
  readonly unmatched: 'domain' | 'entries' | 'work' | undefined;
  readonly code: 'OK' | 'OVER_LIMIT';
  /** Absent where no limit applied. */
  readonly remaining: number | undefined;
  /** What the `candidate` of the node would have answered; absent where there is none. */
  readonly candidate: 'OK' | 'OVER_LIMIT' | undefined;
  /** The block or exemption that decided it; absent where limits did. */
  readonly control?: ToldControl | undefined;
  /** From the first byte decoded to the answer, the store's time included. */
  readonly micros: number;
}

/**
 * What telemetry is told of decisions. Called on the hot path: implementations only count, unless the log asks for
 * more.
 */
export interface DecisionObserver {
  /** Absent where nobody wants to know of single buckets. */
  readonly buckets?: BucketCounter | undefined;
  /**
   * A descriptor, or several that fall on one bucket, asked `rule` for more hits than its `limit` can ever hold.
   * `about` is the rule, or for an override the policy: one object for as long as that is in force.
   */
  neverPasses(domain: string, rule: string, hits: number, limit: number, about: object): void;
  /** A request named a domain that no policy has, in so many descriptors. */
  unknownDomain(domain: string, descriptors: number): void;
  /** A descriptor matched no rule; `meant`: the policy says that it need not. */
  unmatched(domain: string, entries: readonly Entry[], meant: boolean): void;
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
  /** A descriptor asked a rule with `allow_debt` for `hits`. `refund`: it gives them back. */
  debtAsked(domain: string, rule: string, hits: number, refund: boolean): void;
  /** `hits` of a charge went past the `max_debt` of `rule`. */
  forgiven(domain: string, rule: string, hits: number): void;
  /**
   * The same descriptor, for the reference's counters. `stat` is Match.statName, or for a limit override the name the
   * reference gives it, which callers choose (`fromCaller`): such series are bounded apart. `outcome` is undefined
   * where nothing decided. Unlimited and replaced rules count nothing. `shadowed`: it did not fit, but `shadow_mode` or
   * the phase let it pass.
   */
  counted(
    stat: string,
    fromCaller: boolean,
    take: TakeItem,
    outcome: TakeOutcome | undefined,
    shadowed: boolean,
  ): void;
  /**
   * Matching a request took more work than it may cause, because of the value under `key`: it was `denied`, or no rule
   * in force could have matched.
   */
  matchExceeded(domain: string, key: string, denied: boolean): void;
  /**
   * A request waited for its turn until there was no time left (`late`), or could not even wait (`full`): it was
   * `denied`, or see above.
   */
  givenUp(domain: string, why: 'late' | 'full', denied: boolean): void;
  /** SHADOW_MODE let a request pass that would be OVER_LIMIT. */
  globalShadow(): void;
  /** A request got no decision, for its own fault or for want of a policy (`service`), or for the store's (`redis`). */
  failed(cause: 'service' | 'redis'): void;
  /** The store could not decide a request; `reason` is StorageError's. */
  storeError(reason: string): void;
  /** Then `policy` answered for one of its rules. */
  storeFailed(policy: StoreFailureAnswer): void;
  /** Whether {@link logDecision} wants to be called at all. */
  logsDecisions(): boolean;
  logDecision(line: DecisionLine): void;
}
