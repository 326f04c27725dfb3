import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import type { Rate } from '../limiter/rate.js';
import { type RateSpec, rateSpecOf } from './rate-spec.js';

/** Phases in which a policy is introduced; see docs/policy/answers.md, "Phases and headers". */
export const PHASES = ['monitoring', 'grace_period', 'active'] as const;
export type Phase = (typeof PHASES)[number];

/**
 * When each phase begins, as wall clock microseconds. Monitoring holds before the first of them. A fixed phase has
 * -Infinity where it begins and +Infinity for what never comes.
 */
export interface PhaseSchedule {
  readonly gracePeriodAtMicros: number;
  readonly activeAtMicros: number;
}

/** The phase in force at `wallMicros`. */
export function phaseAt(schedule: PhaseSchedule, wallMicros: number): Phase {
  if (wallMicros >= schedule.activeAtMicros) return 'active';
  if (wallMicros >= schedule.gracePeriodAtMicros) return 'grace_period';
  return 'monitoring';
}

/** A schedule that holds one phase for ever. */
export function fixedPhase(phase: Phase): PhaseSchedule {
  return {
    gracePeriodAtMicros: phase === 'monitoring' ? Infinity : -Infinity,
    activeAtMicros: phase === 'active' ? -Infinity : Infinity,
  };
}

/** The families of response headers: what `response_headers` and `request_headers` call each. */
export const HEADER_FAMILIES = {
  xRateLimit: 'x-ratelimit',
  retryAfter: 'retry-after',
  /** `ratelimit-limit`, `-remaining` and `-reset` (draft-ietf-httpapi-ratelimit-headers-03). */
  rateLimitDraft03: 'ratelimit-draft-03',
  /** `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-11). */
  rateLimit: 'ratelimit',
} as const;

/** Which families `response_headers` or `request_headers` list. */
export type HeaderFamilies = Readonly<Record<keyof typeof HEADER_FAMILIES, boolean>>;

/** What a denied caller gets beside the status (`denied_response`). */
export interface DeniedResponse {
  /** `problem+json`: the problem details of RFC 9457; `body` is '' then. */
  readonly preset: 'none' | 'problem+json';
  readonly body: string;
  /** Value of `content-type`; '' leaves Envoy's text/plain. */
  readonly contentType: string;
}

/**
 * What the file says of a limit, a `rate_limit`, an item of `rate_limits`, or a `candidate`, and what holds for it from
 * its node and its file. Plain data: what its place in the tree makes of it is a {@link Rule}.
 */
export interface RuleSpec {
  /** `rate_limit.name`, '' when it has none. */
  readonly name: string;
  /** Absent for `unlimited: true`. */
  readonly rate: RateSpec | undefined;
  readonly phase: PhaseSchedule;
  /** `shadow_mode: true` answers as the monitoring phase does, whatever the phase. */
  readonly shadowMode: boolean;
  /** `quota_mode: true` denies only if every matched quota rule of the request is over. */
  readonly quotaMode: boolean;
  /** Names of rules that do not apply to a request that this rule matches. */
  readonly replaces: readonly string[];
  readonly onStoreFailure: StoreFailurePolicy;
  /**
   * Share of denials that are enforced, 0 to 100 (`enforce_percent`); the others are answered as in the monitoring
   * phase.
   */
  readonly enforcePercent: number;
  /** A `candidate`: sees every request of its node, those denied, too, and never changes an answer. */
  readonly candidate: boolean;
  /** The rule's own; undefined: the file's count. */
  readonly responseHeaders: HeaderFamilies | undefined;
  /** Of the headers that go upstream with the request. */
  readonly requestHeaders: HeaderFamilies | undefined;
  readonly deniedResponse: DeniedResponse | undefined;
  /** The node's `metadata`, a JSON object; undefined when it has none. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/** What a rule is called, by its place in the tree and by what is taken for a secret. */
export interface RuleNames {
  /**
   * Where the rule stands, in keys and policy values only, never request values: `tenant/resource_group=user-chats`; an
   * item of a list with its name or number, `tenant[daily]`, `tenant[2]`. A candidate has the path of its node.
   */
  readonly path: string;
  /**
   * Name of the rule in the reference's statistics, domain first: `mongo_cps.database_users`. '' where values of the
   * request enter it (`detailed_metric`, `value_to_metric`): then Match.statName tells it.
   */
  readonly statName: string;
  /**
   * What follows the name of the node's bucket in that of the rule: its place, unless it is a single limit, and its
   * shape, unless it is a token bucket; see policy/names/bucket-key.ts.
   */
  readonly bucketSuffix: string;
  /**
   * What tells the limits of a list apart in statistics: `.daily`, `.2`; '' for a single limit. {@link statName} has it
   * already.
   */
  readonly statSuffix: string;
}

/** A compiled limit. Immutable; lives as long as the tree that holds it. */
export interface Rule extends Omit<RuleSpec, 'rate'>, RuleNames {
  /** Absent for `unlimited: true`. */
  readonly rate: Rate | undefined;
}

/** What of a rule others of its domain may have in common with it. */
export type SharedRuleParts = Pick<Rule, 'name' | 'rate' | 'phase' | 'replaces' | 'onStoreFailure'>;

/** The rule that `spec` is at its place. One shape for all, so that the hot path stays monomorphic. */
export function namedRule(spec: Omit<RuleSpec, 'rate'>, shared: SharedRuleParts, names: RuleNames): Rule {
  return {
    name: shared.name,
    path: names.path,
    rate: shared.rate,
    phase: shared.phase,
    shadowMode: spec.shadowMode,
    quotaMode: spec.quotaMode,
    replaces: shared.replaces,
    onStoreFailure: shared.onStoreFailure,
    enforcePercent: spec.enforcePercent,
    candidate: spec.candidate,
    responseHeaders: spec.responseHeaders,
    requestHeaders: spec.requestHeaders,
    deniedResponse: spec.deniedResponse,
    metadata: spec.metadata,
    statName: names.statName,
    bucketSuffix: names.bucketSuffix,
    statSuffix: names.statSuffix,
  };
}

/** What a rule was made from. */
export function ruleSpecOf(rule: Rule): RuleSpec {
  // What is left is the specification, whatever fields it has.
  const { path, statName, bucketSuffix, statSuffix, rate, ...said } = rule;
  return { rate: rate === undefined ? undefined : rateSpecOf(rate), ...said };
}
