import type { Rate } from '../../limiter/rate.js';
import type { TakeOutcome } from '../../limiter/take-outcome.js';
import type { PlannedRate } from '../../policy/plans/plan-rate.js';
import type { PlannedTake } from '../../service/plan.js';
import type { DenialRun } from '../tally/denial-run.js';
import { type OpenVerdicts, singleOpen } from './open-verdicts.js';

/**
 * Whether something was denied. The times of a log are not exact, so the log may leave it open: the same requests in
 * another order may have another verdict.
 */
export class Verdict {
  denied = false;
  /** Set if another order of the requests, which the times in the log allow, has the opposite verdict. */
  open: OpenVerdicts | undefined;

  /** Whether it was denied in every order. */
  get isDenied(): boolean {
    return this.denied && this.open === undefined;
  }

  /** Whether it was denied in some order. */
  get mayBeDenied(): boolean {
    return this.denied || this.open !== undefined;
  }

  /** Determines whether the verdict is open, once requests from `_nowMicros` on cannot change that. */
  settle(_nowMicros: number): void {}
}

/** A rule, or all overrides of a domain. */
export interface LimitingRule {
  readonly domain: string;
  /** `Rule.path`, or `override`. */
  readonly label: string;
  /** Rate of the first limit that was met. */
  readonly rate: Rate;
  /** The rate, if its numbers come from the plan of each customer. */
  readonly plan: PlannedRate | undefined;
}

/** The bucket of a limit. */
export interface LimitBucket extends DenialRun {
  readonly rule: LimitingRule;
  /** Whether it may differ from the bucket of the policy before the change. */
  hasDiverged: boolean;
  /**
   * Records a take between `startMicros` and `endMicros`, and determines whether its verdict is open. `isAllowed`:
   * whether the request was allowed.
   */
  record(limit: MetLimit, isAllowed: boolean, startMicros: number, endMicros: number): void;
  /** Records a charge or a refund at the end of a request. */
  recordEnd(hits: number, isRefund: boolean, atMicros: number): void;
  /** Returns where to add a verdict that is open. */
  openVerdicts(): OpenVerdicts;
  /** Records that a take may have been made or not, because another limit of its request is open. */
  disturb(limit: MetLimit): void;
  /** Forgets the takes that certainly happened before a time. */
  forgetBefore(startMicros: number): void;
}

/** A limit that a request met, and whether the limit denied it. */
export class MetLimit extends Verdict {
  readonly domain: string;
  readonly take: PlannedTake;
  readonly outcome: TakeOutcome;
  /** Whether the limit may deny: not in phase `monitoring`, for example. */
  readonly isEnforced: boolean;
  /** Whether the hits exceeded the limit, but did not deny the request, also because the limit is soft. */
  wouldBeThrottled = false;
  /** Undefined until the limit is tracked. */
  rule: LimitingRule | undefined;
  /** Undefined if there are too many buckets to track, and before the take was recorded. */
  bucket: LimitBucket | undefined;
  /** The capacity that would have allowed the hits if all earlier ones had been allowed; 0 if it is unknown. */
  wantedCapacity = 0;
  /** The verdict of the whole request. */
  request: RequestVerdict | undefined;
  #isDisturbed = false;

  constructor(domain: string, take: PlannedTake, outcome: TakeOutcome) {
    super();
    this.domain = domain;
    this.take = take;
    this.outcome = outcome;
    const { ruleEnforcement } = take;
    this.isEnforced = ruleEnforcement !== 'observe' && ruleEnforcement !== 'candidate';
  }

  /** Whether the bucket counts the hits even if a limit of the request denies them. */
  get isAlwaysCounted(): boolean {
    const { hits, rate } = this.take;
    return hits < rate.minChargeHits && rate.countsDenied(true);
  }

  /** Marks this verdict as open. Then it is also unknown what the request took from its other buckets. */
  markOpen(): void {
    if (this.open !== undefined || !this.isEnforced || this.bucket === undefined) return;
    // Such a limit denies every request.
    if (this.take.rate.reportedLimit === 0) return;
    if (this.isAlwaysCounted || !this.#isCertainlyDeniedByOthers()) {
      this.open = this.bucket.openVerdicts();
      this.open.add(this.denied);
    } else {
      // The request does not change the bucket, so the tokens do not tell how many such verdicts deny.
      this.open = singleOpen(this.denied);
    }
    for (const other of this.request?.limits ?? []) if (other !== this) other.#disturb();
  }

  /** Disturbs the bucket if another limit of the request is open. Call it after the take was recorded. */
  disturbIfOthersAreOpen(): void {
    for (const other of this.request?.limits ?? [])
      if (other !== this && other.open !== undefined) this.#disturb();
  }

  /** Returns whether another limit of the request denies it in the replay. */
  isDeniedByOthers(): boolean {
    for (const other of this.request?.limits ?? []) if (other !== this && other.denied) return true;
    return false;
  }

  #isCertainlyDeniedByOthers(): boolean {
    for (const other of this.request?.limits ?? []) if (other !== this && other.isDenied) return true;
    return false;
  }

  #disturb(): void {
    if (this.#isDisturbed || this.bucket === undefined) return;
    this.#isDisturbed = true;
    this.bucket.disturb(this);
  }
}

/** The decision of a `candidate` about a descriptor, and the decision of the other limits. */
export interface CandidateDecision {
  readonly domain: string;
  /** `Rule.path` of its descriptor in the policy. */
  readonly label: string;
  readonly denied: boolean;
  readonly liveDenied: boolean;
}

/** The decision of a policy on one request. */
export class RequestVerdict extends Verdict {
  readonly limits: MetLimit[] = [];
  /** Undefined without candidates. */
  candidates: CandidateDecision[] | undefined;
  /** The verdict of the policy before the change, if it is the same in every order of the requests. */
  sameAs: RequestVerdict | undefined;
  /** Whether the request may have another verdict before the change. */
  hasDiverged = false;

  /** Makes the buckets of this request differ from those before the change. Returns whether one of them did not. */
  diverge(): boolean {
    this.hasDiverged = true;
    let isNew = false;
    for (const { bucket } of this.limits) {
      if (bucket === undefined || bucket.hasDiverged) continue;
      bucket.hasDiverged = true;
      isNew = true;
    }
    return isNew;
  }

  override settle(nowMicros: number): void {
    let denying = 0;
    let openDenying = 0;
    let count = 0;
    let open: OpenVerdicts | undefined;
    for (const limit of this.limits) {
      // Otherwise, each bucket would keep the verdict of its last request in memory.
      limit.bucket?.forgetBefore(nowMicros);
      if (!limit.isEnforced) continue;
      if (limit.denied) denying++;
      if (limit.open === undefined) continue;
      if (limit.denied) openDenying++;
      count++;
      open = limit.open;
    }
    if (count === 0 || openDenying < denying) return;
    this.open = count === 1 ? open : singleOpen(this.denied);
  }
}
