import type { Descriptor, RateLimitOverride, RateLimitRequest } from '../codec/messages.js';
import type { Enforcement, TakeItem, TakeOutcome } from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import type { LiveControl } from '../limiter/control.js';
import type { Entry } from '../limiter/entry.js';
import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import { windowRate } from '../limiter/fixed-window.js';
import type { Rate } from '../limiter/rate.js';
import { tokenBucketRate } from '../limiter/token-bucket.js';
import { UNIT_MICROS, type WindowUnit } from '../limiter/window-unit.js';
import { type MatchWork, namingSteps } from '../policy/match-work.js';
import { entriesKey, extendedKey, overrideKey, shapePart } from '../policy/names/bucket-key.js';
import type { Algorithm, DomainPolicy, Match } from '../policy/policy.js';
import { type PhaseSchedule, phaseAt, type Rule } from '../policy/rule.js';
import type { AnswerOptions } from './answer/answer-options.js';
import { OVERRIDE_UNITS } from './bad-descriptor.js';
import type { Caller } from './caller.js';
import type { ControlIndex } from './controls/control-index.js';
import type { DomainControls } from './controls/domain-controls.js';

/** What one descriptor asks of one bucket, and what came of it. */
export interface PlannedTake extends TakeItem {
  /** What the store is told: {@link ruleEnforcement}, or `observe` where the request cannot be denied for it. */
  enforcement: Enforcement;
  /**
   * What the rule itself can do to the answer, deny or only be seen: by phase, `shadow_mode`, `quota_mode` and
   * `enforce_percent`.
   */
  ruleEnforcement: Enforcement;
  /** Absent for a limit override. */
  readonly rule: Rule | undefined;
  /** `Rule.name`; '' for an override, as in the reference. */
  readonly name: string;
  /** Match.statNames of it; '' for an override, whose name nobody needs but statistics. */
  readonly stat: string;
  /** For metrics and logs: `Rule.path`, or `override`. */
  readonly label: string;
  /** `quota_mode` or QUOTA_MODE, whatever the phase makes of {@link ruleEnforcement}. */
  readonly quota: boolean;
  /** `shadow_mode` of the rule. */
  readonly shadow: boolean;
  readonly onStoreFailure: StoreFailurePolicy;
  /** What the store, or the failure policy, said; absent before, and where the failure policy `allow` answered. */
  outcome: TakeOutcome | undefined;
}

/** One descriptor on its way from match to answer. */
export class Decision {
  readonly match: Match;
  /** What may deny or be observed; none where no bucket is concerned: no rule, unlimited, replaced, controlled. */
  takes: readonly PlannedTake[];
  /** That of a `candidate`, which no answer shows. */
  candidate: PlannedTake | undefined;
  readonly unlimited: boolean;
  /** The block or exemption that decides the descriptor in the place of all limits. */
  readonly control: LiveControl | undefined;
  /** Whether the descriptor brings a limit of its own, which stands in the place of the rules. */
  readonly overridden: boolean;

  constructor(
    match: Match,
    takes: readonly PlannedTake[],
    candidate: PlannedTake | undefined,
    unlimited: boolean,
    control?: LiveControl,
    overridden = false,
  ) {
    this.match = match;
    this.takes = takes;
    this.candidate = candidate;
    this.unlimited = unlimited;
    this.control = control;
    this.overridden = overridden;
  }
}

const NO_RULES: readonly Rule[] = [];

/**
 * The label of a limit override in metrics and logs: overrides come from callers, so they never make series of their
 * own.
 */
export const OVERRIDE_LABEL = 'override';

/** How many hits a descriptor asks for: its own addend, else the request's, where 0 means 1. */
export function hitsOf(descriptor: Descriptor, request: RateLimitRequest): number {
  return descriptor.hitsAddend ?? (request.hitsAddend === 0 ? 1 : request.hitsAddend);
}

function enforcementOf(
  phase: PhaseSchedule,
  shadow: boolean,
  quota: boolean,
  wallMicros: number,
): Enforcement {
  if (shadow || phaseAt(phase, wallMicros) !== 'active') return 'observe';
  return quota ? 'quota' : 'enforce';
}

/**
 * What a rule can do in this request: `enforce_percent` lets some only be observed. Quotas deny together: see
 * {@link drawForQuotas}.
 */
function enforcementOfRule(rule: Rule, quota: boolean, context: RequestContext): Enforcement {
  if (rule.candidate) return 'candidate';
  const ruleEnforcement = enforcementOf(rule.phase, rule.shadowMode, quota, context.wallMicros);
  if (rule.enforcePercent === 100 || ruleEnforcement !== 'enforce') return ruleEnforcement;
  return context.percent() < rule.enforcePercent ? ruleEnforcement : 'observe';
}

export const NO_TAKES: readonly PlannedTake[] = [];

/** Steps (MatchWork) that an entry takes in the name of a limit override's bucket. */
const OVERRIDE_ENTRY_STEPS = 60;

/** What all requests of a service are planned and answered by. */
export interface PlanOptions {
  readonly clock: Pick<Clock, 'wallMicros'>;
  /** What holds for every answer. */
  readonly answers: AnswerOptions;
  /** More limits that a request meets are refused, candidates apart: one request is one atomic step of the store. */
  readonly maxLimits: number;
  /** Blocks and exemptions; none when absent. */
  readonly controls?: ControlIndex;
  /** Gives numbers from 0 to just below 1, for `enforce_percent`; Math.random when absent. */
  readonly random?: () => number;
}

/** Stands for a request that is answered before it is decoded. */
export const UNDECODED_REQUEST: RateLimitRequest = { domain: '', descriptors: [], hitsAddend: 0 };

/**
 * One request on its way from its descriptors to its answer. Made once for each request of a domain that has a policy,
 * and handed on from step to step, each of which adds what it has found.
 */
export class RequestContext {
  readonly options: PlanOptions;
  readonly request: RateLimitRequest;
  /** The snapshot that decides it. */
  readonly policy: DomainPolicy;
  readonly caller: Caller;
  /** When the request came, monotonic; 0 where neither a deadline nor a log needs it. */
  readonly startMicros: number;
  /** When it is planned; from then on, when it is answered. */
  wallMicros: number;
  /** Of the domain; undefined where there are none. */
  readonly controls: DomainControls | undefined;
  /** For each descriptor that is planned, in order. */
  readonly decisions: Decision[] = [];
  /** What the store is asked; see {@link takesOf}. */
  takes: readonly PlannedTake[] = NO_TAKES;
  /** Limits that its descriptors have met so far, candidates apart. */
  limits = 0;
  /** Whether one of its descriptors is blocked, so that the others need not be planned. */
  blocked = false;
  /** An enforced bucket is over. */
  limitDenies = false;
  /** Quota buckets are in force, and every one of them is over. */
  quotasDeny = false;
  /** The same if all phases were active. */
  quotasWouldDeny = false;
  /** Whether the answer is OVER_LIMIT. */
  denied = false;
  private drawn = -1;

  constructor(
    options: PlanOptions,
    request: RateLimitRequest,
    policy: DomainPolicy,
    caller: Caller,
    startMicros: number,
  ) {
    this.options = options;
    this.request = request;
    this.policy = policy;
    this.caller = caller;
    this.startMicros = startMicros;
    this.wallMicros = options.clock.wallMicros();
    this.controls = options.controls?.of(policy.domain);
  }

  /**
   * The number from 0 to just below 100 that `enforce_percent` is held against: drawn once per request, when it is
   * first needed, so that rules agree.
   */
  percent(): number {
    if (this.drawn < 0) this.drawn = (this.options.random ?? Math.random)() * 100;
    return this.drawn;
  }
}

function takeOfRule(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
  index: number,
): PlannedTake {
  const rule = match.rules[index] as Rule;
  const { request } = context;
  const { answers } = context.options;
  const quota = answers.quotaMode || rule.quotaMode;
  const ruleEnforcement = enforcementOfRule(rule, quota, context);
  return {
    key: match.keys[index] as string,
    tagLength: match.tagLength,
    rate: rule.rate as Rate,
    hits: hitsOf(descriptor, request),
    refund: descriptor.isNegativeHits,
    enforcement: answers.shadowMode && ruleEnforcement !== 'candidate' ? 'observe' : ruleEnforcement,
    ruleEnforcement,
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

function overrideRate(unit: WindowUnit, requests: number, algorithm: Algorithm): Rate {
  if (algorithm === 'fixed_window' || requests === 0) return windowRate(unit, requests);
  return tokenBucketRate(requests, requests, UNIT_MICROS[unit]);
}

/** Steps that it takes to name the bucket of a limit override: every entry enters its name. */
function overrideNamingSteps(entries: readonly Entry[]): number {
  let steps = 0;
  for (let i = 0; i < entries.length; i++) steps += OVERRIDE_ENTRY_STEPS + namingSteps(entries[i] as Entry);
  return steps;
}

/** A limit override stands in the place of the node's rules, its candidate included. */
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
  return {
    key,
    tagLength,
    rate,
    hits: hitsOf(descriptor, request),
    refund: descriptor.isNegativeHits,
    enforcement: answers.shadowMode ? 'observe' : ruleEnforcement,
    ruleEnforcement,
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

/** Plans a descriptor that is matched; undefined when `work` does not last. */
export function planDescriptor(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
  work: MatchWork,
): Decision | undefined {
  const { rules, entries } = match;
  if (descriptor.limit !== undefined && entries.length > 0) {
    if (!work.invest(overrideNamingSteps(entries))) return undefined;
    const take = takeOfOverride(context, descriptor, match, descriptor.limit);
    return new Decision(match, [take], undefined, false, undefined, true);
  }
  const count = rules.length;
  if (count === 0) return new Decision(match, NO_TAKES, undefined, false);
  const last = rules[count - 1] as Rule;
  const candidate = last.candidate ? takeOfRule(context, descriptor, match, count - 1) : undefined;
  const liveCount = candidate === undefined ? count : count - 1;
  const unlimited = liveCount > 0 && (rules[0] as Rule).rate === undefined;
  if (liveCount === 0 || unlimited) return new Decision(match, NO_TAKES, candidate, unlimited);
  const takes = new Array<PlannedTake>(liveCount);
  for (let i = 0; i < liveCount; i++) {
    takes[i] = takeOfRule(context, descriptor, match, i);
  }
  return new Decision(match, takes, candidate, false);
}

/** The rules of a decision that may replace others; a limit override stands in their place and replaces nothing. */
function replacingRules({ match, overridden }: Decision): readonly Rule[] {
  return overridden ? NO_RULES : match.rules;
}

/**
 * Drops the takes whose rule another matched rule names in `replaces`; a candidate goes with the last rule of its node.
 */
function applyReplaces(decisions: readonly Decision[]): void {
  const names = new Set<string>();
  for (const decision of decisions) {
    for (const rule of replacingRules(decision)) for (const name of rule.replaces) names.add(name);
  }
  for (const decision of decisions) {
    const kept = decision.takes.filter(({ name }) => name === '' || !names.has(name));
    if (kept.length === decision.takes.length) continue;
    decision.takes = kept;
    if (kept.length === 0) decision.candidate = undefined;
  }
}

/** Whether all limits are quotas, candidates apart. */
function areQuotas(rules: readonly Rule[]): boolean {
  return rules.some(({ candidate }) => !candidate) && rules.every((rule) => rule.quotaMode || rule.candidate);
}

/**
 * Whether a decision counts as a quota that always passes, as in the reference: then no quota denies the request. So
 * does a quota in shadow mode, and under QUOTA_MODE a descriptor without a limit; of one that took too much work to
 * match nobody knows that. An exempted quota is one with room.
 */
export function isPassingQuota(decision: Decision, quotaMode: boolean): boolean {
  const { match, takes, unlimited, control, overridden } = decision;
  if (control !== undefined) return quotaMode || (!overridden && areQuotas(match.rules));
  return takes.length === 0
    ? quotaMode && !unlimited && match.exceeded === undefined
    : takes.every(({ quota, shadow }) => quota && shadow);
}

/**
 * `enforce_percent` of quotas: they deny only together, so the draw is held against the highest of them, and none is
 * left out alone. Or a quota with room would, unless drawn, let the others deny.
 */
function drawForQuotas(context: RequestContext): void {
  const quotas = context.decisions.flatMap(({ takes }) =>
    takes.filter(({ ruleEnforcement }) => ruleEnforcement === 'quota'),
  );
  const percent = quotas.reduce((max, { rule }) => Math.max(max, rule?.enforcePercent ?? 100), 0);
  if (quotas.length === 0 || percent === 100 || context.percent() < percent) return;
  for (const take of quotas) {
    take.ruleEnforcement = 'observe';
    take.enforcement = 'observe';
  }
}

/** Beside a quota that always passes the others deny nothing, and the store need not know of them. */
function applyPassingQuotas({ decisions, options }: RequestContext): void {
  if (!decisions.some((decision) => isPassingQuota(decision, options.answers.quotaMode))) return;
  for (const { takes } of decisions) {
    for (const take of takes) if (take.enforcement === 'quota') take.enforcement = 'observe';
  }
}

/** What the decisions of a request mean for each other: rules that replace others, quotas that deny together. */
export function applyReplacesAndQuotas(context: RequestContext): void {
  const { decisions } = context;
  let replaces = false;
  let quotas = false;
  let drawn = false;
  for (let i = 0; i < decisions.length; i++) {
    const decision = decisions[i] as Decision;
    const rules = replacingRules(decision);
    for (let at = 0; at < rules.length; at++) if ((rules[at] as Rule).replaces.length > 0) replaces = true;
    for (let at = 0; at < decision.takes.length; at++) {
      const { quota, rule } = decision.takes[at] as PlannedTake;
      if (!quota) continue;
      quotas = true;
      if (rule !== undefined && rule.enforcePercent < 100) drawn = true;
    }
  }
  if (replaces) applyReplaces(decisions);
  if (!quotas) return;
  if (drawn) drawForQuotas(context);
  applyPassingQuotas(context);
}

/** What the store is asked, in the order of the descriptors, candidates after the limits beside them. */
export function takesOf(decisions: readonly Decision[]): readonly PlannedTake[] {
  const [only] = decisions;
  // By far the most frequent.
  if (only !== undefined && decisions.length === 1) {
    return only.candidate === undefined ? only.takes : [...only.takes, only.candidate];
  }
  const takes: PlannedTake[] = [];
  for (let i = 0; i < decisions.length; i++) {
    const { takes: own, candidate } = decisions[i] as Decision;
    for (let at = 0; at < own.length; at++) takes.push(own[at] as PlannedTake);
    if (candidate !== undefined) takes.push(candidate);
  }
  return takes;
}
