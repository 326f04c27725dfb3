import type { Rate } from '../../limiter/rate.js';
import type { TakeOutcome } from '../../limiter/take-outcome.js';
import type { PlannedRate } from '../../policy/plans/plan-rate.js';
import { isBlocked } from '../../policy/plans/planned-rules.js';
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
  /** Rate of the first limit that was met by a customer who is not blocked. Before, that of a blocked customer. */
  rate: Rate;
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
  /** The chain that the limit belongs to (`then`), which is in {@link RequestVerdict.limits} instead of the limit. */
  chain: MetChain | undefined;
  #isDisturbed = false;

  constructor(domain: string, take: PlannedTake, outcome: TakeOutcome) {
    super();
    this.domain = domain;
    this.take = take;
    this.outcome = outcome;
    const { ruleEnforcement } = take;
    this.isEnforced = ruleEnforcement !== 'observe' && ruleEnforcement !== 'candidate';
  }

  /** The hits for which the bucket must have room. A call with 0 hits asks for one, unless a window passes it. */
  get wantedHits(): number {
    const { hits, rate, enforcement } = this.take;
    if (hits > 0 || rate.kind === 'concurrency') return hits;
    const passes = rate.kind === 'window' && enforcement !== 'spill' && rate.maxDebt === 0;
    return passes && rate.requestsPerUnit > 0 ? 0 : 1;
  }

  /** Whether the bucket counts the hits even if a limit of the request denies them. */
  get isAlwaysCounted(): boolean {
    const { hits, rate } = this.take;
    return hits < rate.minChargeHits && rate.countsDenied(true);
  }

  /** Whether a plan blocks the customer, so that the limit allows nothing. */
  get isBlocked(): boolean {
    const { rule } = this.take;
    return rule !== undefined && isBlocked(rule);
  }

  /** Whether nothing was taken from the bucket, because an earlier limit of the chain paid. */
  get isSkipped(): boolean {
    return this.chain?.skips(this) === true;
  }

  /** Whether the hits do not fit in some order. */
  get mayLimit(): boolean {
    const { limited, remaining } = this.outcome;
    return limited || this.open !== undefined || (this.isSkipped && remaining < this.wantedHits);
  }

  /** Marks this verdict as open. Then it is also unknown what the request took from its other buckets. */
  markOpen(): void {
    if (this.open !== undefined || !this.isEnforced || this.bucket === undefined) return;
    // Such a limit denies every request.
    if (this.take.rate.reportedLimit === 0) return;
    if (this.chain !== undefined) {
      this.open = singleOpen(this.outcome.limited);
      this.chain.opened(this);
      return;
    }
    if (this.isAlwaysCounted || !this.#isCertainlyDeniedByOthers()) {
      this.open = this.bucket.openVerdicts();
      this.open.add(this.denied);
    } else {
      // The request does not change the bucket, so the tokens do not tell how many such verdicts deny.
      this.open = singleOpen(this.denied);
    }
    this.disturbOthers();
  }

  /** Disturbs the buckets of the other limits of the request. */
  protected disturbOthers(): void {
    for (const other of this.request?.limits ?? []) if (other !== this) other.disturb();
  }

  /** Disturbs the bucket if another limit of the request is open. Call it after the take was recorded. */
  disturbIfOthersAreOpen(): void {
    const own = this.chain ?? this;
    for (const other of this.request?.limits ?? [])
      if (other !== own && other.open !== undefined) this.disturb();
  }

  /** Returns whether another limit of the request denies it in the replay. */
  isDeniedByOthers(): boolean {
    const own = this.chain ?? this;
    for (const other of this.request?.limits ?? []) if (other !== own && other.denied) return true;
    return false;
  }

  #isCertainlyDeniedByOthers(): boolean {
    for (const other of this.request?.limits ?? []) if (other !== this && other.isDenied) return true;
    return false;
  }

  /** Forgets what certainly happened before a time. Otherwise, each bucket would keep its last request in memory. */
  forgetBefore(nowMicros: number): void {
    this.bucket?.forgetBefore(nowMicros);
  }

  /** Records that the take may have been made or not. */
  disturb(): void {
    if (this.#isDisturbed || this.bucket === undefined) return;
    this.#isDisturbed = true;
    this.bucket.disturb(this);
  }
}

/**
 * The limits of a chain (`then`) that a request met, with the verdict of the chain: it denies only if all of its limits
 * do. `take` is the one that paid, or the last one. Only the {@link members} have buckets.
 */
export class MetChain extends MetLimit {
  readonly members: readonly MetLimit[];
  /** The rule of the last limit, which decides for the chain. */
  lastRule: LimitingRule | undefined;
  readonly #payer: number;

  constructor(domain: string, payer: PlannedTake, outcome: TakeOutcome) {
    const { chain } = payer;
    const last = chain.at(-1) ?? payer;
    super(domain, outcome.limited ? last : payer, outcome.limited ? (last.outcome ?? outcome) : outcome);
    this.members = chain.map((take) => new MetLimit(domain, take, take.outcome ?? outcome));
    for (const member of this.members) member.chain = this;
    this.#payer = outcome.limited ? chain.length : chain.indexOf(payer);
  }

  /** Returns whether a member comes after the one that paid. */
  skips(member: MetLimit): boolean {
    return this.members.indexOf(member) > this.#payer;
  }

  /** Records that the verdict of a member is open. Then it is also unknown what the later ones paid. */
  opened(member: MetLimit): void {
    if (!member.isSkipped)
      for (const later of this.members.slice(this.members.indexOf(member) + 1)) later.disturb();
    const isOpen = this.denied || this.members.every(({ mayLimit }) => mayLimit);
    if (!isOpen || !this.isEnforced || this.open !== undefined) return;
    this.open = singleOpen(this.denied);
    this.rule = this.lastRule;
    this.disturbOthers();
  }

  override disturb(): void {
    for (const member of this.members) member.disturb();
  }

  override disturbIfOthersAreOpen(): void {
    for (const member of this.members) member.disturbIfOthersAreOpen();
  }

  override forgetBefore(nowMicros: number): void {
    for (const member of this.members) member.forgetBefore(nowMicros);
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

  /** The limits with buckets: the members of chains instead of the chains. */
  get takes(): readonly MetLimit[] {
    const { limits } = this;
    if (!limits.some((limit) => limit instanceof MetChain)) return limits;
    return limits.flatMap((limit) => (limit instanceof MetChain ? limit.members : limit));
  }

  /** Makes the buckets of this request differ from those before the change. Returns whether one of them did not. */
  diverge(): boolean {
    this.hasDiverged = true;
    let isNew = false;
    for (const { bucket } of this.takes) {
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
      limit.forgetBefore(nowMicros);
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
