import type { Descriptor, RateLimitOverride, RateLimitRequest } from '../codec/messages.js';
import type { Enforcement, TakeItem, TakeOutcome } from '../limiter/bucket-store.js';
import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import { MAX_SLOTS_PER_ITEM } from '../limiter/holds/hold.js';
import type { Rate } from '../limiter/rate.js';
import type { WindowUnit } from '../limiter/window-unit.js';
import { entriesKey, extendedKey, overrideKey, shapePart } from '../policy/names/bucket-key.js';
import { blockedKey, isBlocked, unblockedRule } from '../policy/plans/planned-rules.js';
import type { DomainPolicy, Match } from '../policy/policy.js';
import type { HoldSpec, Rule } from '../policy/rule.js';
import { OVERRIDE_UNITS } from './bad-descriptor.js';
import type { Caller } from './caller.js';
import { enforcementOf, enforcementOfRule } from './enforcement/enforcement.js';
import { type BoundHold, newHold, noHold } from './holds/hold-ids.js';
import { separateEnds } from './holds/oldest-ends.js';
import type { Settlements } from './holds/settlements.js';
import { overrideRate } from './override-limit.js';
import type { PlanOptions } from './plan-options.js';
import type { HoldRecord } from './record/decision-record.js';

/** A take that one descriptor requests from one bucket, and its outcome. */
export interface PlannedTake extends TakeItem {
  readonly holds: BoundHold | undefined;
  /** Enforcement in the store: {@link ruleEnforcement}, or `observe` if the take cannot deny the request. */
  enforcement: Enforcement;
  /** Enforcement of the rule in this request: phase, `shadow_mode`, `quota_mode` and `enforce_percent` determine it. */
  ruleEnforcement: Enforcement;
  /** Whether the request is marked if it is over this soft limit (`on_over`). */
  readonly marks: boolean;
  /** For the limit that decides for its chain (`then`): all limits of the chain, in order. Otherwise empty. */
  chain: readonly PlannedTake[];
  /** Absent for a limit override. */
  readonly rule: Rule | undefined;
  /** `Rule.name`; '' for an override, as in the reference. */
  readonly name: string;
  /** The entry of Match.statNames; '' for an override, whose name only statistics need. */
  readonly stat: string;
  /** Label in metrics and logs: `Rule.path`, or `override`. */
  readonly label: string;
  /** Whether `quota_mode` or QUOTA_MODE applies, in every phase. */
  readonly quota: boolean;
  /** `shadow_mode` of the rule. */
  readonly shadow: boolean;
  readonly onStoreFailure: StoreFailurePolicy;
  /** Outcome from the store or the failure policy; absent before, and with the failure policy `allow`. */
  outcome: TakeOutcome | undefined;
}

/** The state of one descriptor from its match to its answer. */
export class Decision {
  readonly match: Match;
  /** Takes that can deny or are observed; none without a rule, or if unlimited or replaced. */
  takes: readonly PlannedTake[];
  readonly unlimited: boolean;
  /** Whether the descriptor has a limit override, which replaces the rules. */
  readonly overridden: boolean;
  /**
   * Results of the hold token, see {@link Settlements}, or of {@link oldestEnds}. Undefined for a descriptor that ends
   * no holds.
   */
  ends: readonly HoldRecord[] | undefined;
  /** Takes that are not takes, but ends of requests (`pair: oldest`). Their hits are the use. */
  oldestEnds: readonly PlannedTake[] = NO_TAKES;

  constructor(
    match: Match,
    takes: readonly PlannedTake[],
    unlimited: boolean,
    overridden = false,
    ends?: readonly HoldRecord[],
  ) {
    this.match = match;
    this.takes = takes;
    this.unlimited = unlimited;
    this.overridden = overridden;
    this.ends = ends;
  }

  /** Whether the descriptor ends holds and meets no limits. */
  get onlyEnds(): boolean {
    return this.ends !== undefined && this.takes.length === 0;
  }
}

/** Label of limit overrides in metrics and logs. Callers choose overrides, so all of them share one series. */
export const OVERRIDE_LABEL = 'override';

/** Returns the hits of a descriptor: its own addend, or the addend of the request, where 0 means 1. */
export function hitsOf(descriptor: Descriptor, request: RateLimitRequest): number {
  return descriptor.hitsAddend ?? (request.hitsAddend === 0 ? 1 : request.hitsAddend);
}

export const NO_TAKES: readonly PlannedTake[] = [];

/** Placeholder for a request that gets an answer before it is decoded. */
export const UNDECODED_REQUEST: RateLimitRequest = { domain: '', descriptors: [], hitsAddend: 0 };

/**
 * The state of one request from its descriptors to its answer. Created once for each request of a domain that has a
 * policy; each step adds its results.
 */
export class RequestContext {
  readonly options: PlanOptions;
  readonly request: RateLimitRequest;
  /** Settlements of the hold tokens in the request; undefined without tokens. */
  readonly settlements: Settlements | undefined;
  /** The policy snapshot that decides the request. */
  readonly policy: DomainPolicy;
  readonly caller: Caller;
  /** Monotonic time of arrival; 0 if neither a deadline nor a log needs it. */
  readonly startMicros: number;
  /** Wall clock time of planning, and later of the answer. */
  wallMicros: number;
  /** The decision of each planned descriptor, in order. */
  readonly decisions: Decision[] = [];
  /** The takes that are sent to the store; see {@link takesOf}. */
  takes: readonly PlannedTake[] = NO_TAKES;
  /** Number of limits that the descriptors have matched so far. */
  limits = 0;
  /** Whether an enforced bucket is over its limit. */
  limitDenies = false;
  /** Whether there are enforced quotas and all of them are over their limits. */
  quotasDeny = false;
  /** Value of {@link quotasDeny} if all phases were active. */
  quotasWouldDeny = false;
  /** Whether the answer is OVER_LIMIT. */
  denied = false;
  /** Token of the holds that the request placed; undefined if it placed none. */
  token: string | undefined = undefined;
  private drawn = -1;
  private slots = 0;

  constructor(
    options: PlanOptions,
    request: RateLimitRequest,
    policy: DomainPolicy,
    caller: Caller,
    startMicros: number,
    settlements?: Settlements,
  ) {
    this.options = options;
    this.settlements = settlements;
    this.request = request;
    this.policy = policy;
    this.caller = caller;
    this.startMicros = startMicros;
    this.wallMicros = options.clock.wallMicros();
  }

  /**
   * Returns `hits`, or a number that is always limited if the request would take more slots of concurrency limits than
   * one item may. This bounds the work for one request.
   */
  boundedSlots(rate: Rate | undefined, hits: number): number {
    if (rate?.kind !== 'concurrency') return hits;
    this.slots += hits;
    return this.slots > MAX_SLOTS_PER_ITEM ? Math.max(hits, MAX_SLOTS_PER_ITEM + 1) : hits;
  }

  /**
   * Returns the number from 0 up to, but not including, 100 that is compared with `enforce_percent`. It is drawn once
   * per request, when it is first needed, so that all rules agree.
   */
  percent(): number {
    if (this.drawn < 0) this.drawn = (this.options.random ?? Math.random)() * 100;
    return this.drawn;
  }
}

/** Returns whether the limit is soft (`on_over`): requests over it pass. */
export function isSoft({ rule }: PlannedTake): boolean {
  return rule?.onOver !== undefined;
}

/**
 * Returns the takes in groups: the limits of a chain (`then`) together, and each other limit alone. The last limit of a
 * chain decides for all of them.
 */
export function chainsOf(takes: readonly PlannedTake[]): readonly (readonly PlannedTake[])[] {
  const chains: PlannedTake[][] = [];
  let continues = false;
  for (const take of takes) {
    if (continues) chains.at(-1)?.push(take);
    else chains.push([take]);
    continues = take.enforcement === 'spill';
  }
  return chains;
}

/** Returns the limits before the one that paid for its chain (`then`); none if it is the first one, or did not pay. */
export function passedOver(take: PlannedTake): readonly PlannedTake[] {
  const { chain, outcome } = take;
  return chain.length === 0 || outcome?.limited !== false ? NO_TAKES : chain.slice(0, chain.indexOf(take));
}

/** Returns whether a descriptor gives hits back. With 0 hits, it only looks. */
function isRefund({ isNegativeHits }: Descriptor, hits: number): boolean {
  return isNegativeHits && hits > 0;
}

/** Returns the take of a rule, whose names are those of the rule at `index` of a match. */
function takeOfRule(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
  index: number,
  rule: Rule,
): PlannedTake {
  const spills = rule.spillsTo !== '';
  const { request } = context;
  const { answers } = context.options;
  const isSoft = rule.onOver !== undefined;
  // Quotas deny only together, but a blocked customer is denied whatever the others say.
  const quota = !isSoft && !isBlocked(rule) && (answers.quotaMode || rule.quotaMode);
  const phaseEnforcement = enforcementOfRule(rule, quota, context);
  const ruleEnforcement = spills ? 'spill' : isSoft ? 'observe' : phaseEnforcement;
  const asked = hitsOf(descriptor, request);
  const refund = isRefund(descriptor, asked);
  const hold = refund ? undefined : rule.hold;
  const pairsOldest = hold?.pair === 'oldest';
  // A call with 0 hits only looks, unless it starts a request of a rule whose other calls are ends. A refund of 0 hits
  // looks at any rule.
  const starts = pairsOldest ? asked === 0 && !descriptor.isNegativeHits : asked > 0;
  const isEnd = pairsOldest && asked > 0;
  const hits = starts ? context.boundedSlots(rule.rate, hold?.amount ?? asked) : asked;
  const key = match.keys[index] as string;
  const { tagLength } = match;
  return {
    key: isBlocked(rule) ? blockedKey({ key, tagLength }) : key,
    tagLength,
    rate: rule.rate as Rate,
    hits,
    refund,
    holds: hold !== undefined && !isEnd ? holdOf(rule.digest, starts ? hits : 0, hold) : undefined,
    enforcement: answers.shadowMode && !spills ? 'observe' : ruleEnforcement,
    ruleEnforcement,
    marks: isSoft && phaseEnforcement === 'enforce' && !answers.shadowMode,
    chain: NO_TAKES,
    rule,
    name: rule.name,
    stat: match.statNames[index] as string,
    label: rule.path,
    quota,
    shadow: rule.shadowMode,
    onStoreFailure: rule.onStoreFailure,
    outcome: undefined,
  };
}

function holdOf(digest: string, hits: number, { expiresAfterMillis, unknown }: HoldSpec): BoundHold {
  const frees = unknown === 'free';
  return hits === 0 ? noHold(expiresAfterMillis, frees) : newHold(digest, hits, expiresAfterMillis, frees);
}

/** Returns the take of a limit override, which replaces the node's rules. */
function takeOfOverride(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
  limit: RateLimitOverride,
): PlannedTake {
  const { policy, request, wallMicros } = context;
  const { answers } = context.options;
  const unit = OVERRIDE_UNITS[limit.unit] as WindowUnit;
  const rate = overrideRate(unit, limit.requestsPerUnit, policy.overrideAlgorithm);
  const base = overrideKey(
    entriesKey(policy.domain, match.entries, policy.secretKeys),
    unit,
    limit.requestsPerUnit,
  );
  const { key, tagLength } = extendedKey(base, shapePart(rate));
  const quota = answers.quotaMode;
  const ruleEnforcement = enforcementOf(match.phase, false, quota, wallMicros);
  const hits = hitsOf(descriptor, request);
  return {
    key,
    tagLength,
    rate,
    hits,
    refund: isRefund(descriptor, hits),
    holds: undefined,
    enforcement: answers.shadowMode ? 'observe' : ruleEnforcement,
    ruleEnforcement,
    marks: false,
    chain: NO_TAKES,
    rule: undefined,
    name: '',
    stat: '',
    label: OVERRIDE_LABEL,
    quota,
    shadow: false,
    onStoreFailure: match.onStoreFailure,
    outcome: undefined,
  };
}

/** Plans a matched descriptor. */
export function planDescriptor(context: RequestContext, descriptor: Descriptor, match: Match): Decision {
  const { rules, entries } = match;
  if (descriptor.limit !== undefined && entries.length > 0) {
    const take = takeOfOverride(context, descriptor, match, descriptor.limit);
    return new Decision(match, [take], false, true);
  }
  const count = rules.length;
  const unlimited = count > 0 && (rules[0] as Rule).rate === undefined;
  if (count === 0 || unlimited) return new Decision(match, NO_TAKES, unlimited);
  const takes = new Array<PlannedTake>(count);
  for (let i = 0; i < count; i++) takes[i] = takeOfRule(context, descriptor, match, i, rules[i] as Rule);
  const decision = new Decision(match, takes, false);
  if (!context.policy.hasHolds) return decision;
  const others = isBlocked(rules[0] as Rule) ? takesOfUnblocked(context, descriptor, match) : NO_TAKES;
  return separateEnds(decision, others);
}

/** Returns the takes of a blocked customer as if it were not blocked, because its requests in flight still end. */
function takesOfUnblocked(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
): readonly PlannedTake[] {
  return match.rules.flatMap((rule, index) => {
    const unblocked = unblockedRule(rule);
    if (unblocked?.hold?.pair !== 'oldest') return [];
    return [takeOfRule(context, descriptor, match, index, unblocked)];
  });
}

/** Returns the take of a limit as if the customer were not blocked, because only this take has the limit's bucket. */
export function takeWithoutBlock(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
  take: PlannedTake,
): PlannedTake {
  const { rule } = take;
  const unblocked = rule && unblockedRule(rule);
  if (unblocked === undefined) return take;
  return takeOfRule(context, descriptor, match, match.rules.indexOf(rule as Rule), unblocked);
}

/** Returns the takes of a request, in the order of the descriptors. */
export function takesOf(decisions: readonly Decision[]): readonly PlannedTake[] {
  const [only] = decisions;
  // This is by far the most frequent case.
  if (only !== undefined && decisions.length === 1) return only.takes;
  const takes: PlannedTake[] = [];
  for (let i = 0; i < decisions.length; i++) {
    const { takes: own } = decisions[i] as Decision;
    for (let at = 0; at < own.length; at++) takes.push(own[at] as PlannedTake);
  }
  return takes;
}
