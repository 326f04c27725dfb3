import type { Take, TakeOutcome } from '../limiter/bucket-store.js';
import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import type { Rate } from '../limiter/rate.js';
import type { LeaseSpec } from './leases.js';
import { type PlanRate, type RateSpec, rateSpecOf } from './plans/plan-rate.js';
import type { PrioritySpec } from './priorities.js';

/** Phases in which a policy is introduced; see docs/policy/answers.md. */
export const PHASES = ['monitoring', 'grace_period', 'active'] as const;
export type Phase = (typeof PHASES)[number];

/**
 * Start of each phase, as wall clock microseconds; monitoring applies before. A fixed phase starts at -Infinity, and
 * phases that never start have +Infinity.
 */
export interface PhaseSchedule {
  readonly gracePeriodAtMicros: number;
  readonly activeAtMicros: number;
}

/** `wallMicros`: microseconds since the epoch. */
export function phaseAt(schedule: PhaseSchedule, wallMicros: number): Phase {
  if (wallMicros >= schedule.activeAtMicros) return 'active';
  if (wallMicros >= schedule.gracePeriodAtMicros) return 'grace_period';
  return 'monitoring';
}

/** A schedule without changes. */
export function fixedPhase(phase: Phase): PhaseSchedule {
  return {
    gracePeriodAtMicros: phase === 'monitoring' ? Infinity : -Infinity,
    activeAtMicros: phase === 'active' ? -Infinity : Infinity,
  };
}

/** Header families by their names in `response_headers` and `request_headers`. */
export const HEADER_FAMILIES = {
  xRateLimit: 'x-ratelimit',
  retryAfter: 'retry-after',
  /** `ratelimit-limit`, `-remaining` and `-reset` (draft-ietf-httpapi-ratelimit-headers-03). */
  rateLimitDraft03: 'ratelimit-draft-03',
  /** `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-11). */
  rateLimit: 'ratelimit',
} as const;

/** Families that `response_headers` or `request_headers` list. */
export type HeaderFamilies = Readonly<Record<keyof typeof HEADER_FAMILIES, boolean>>;

/** The body for denied requests (`denied_response`). */
export interface DeniedResponse {
  /** `problem+json`: the problem details of RFC 9457, with an empty `body`. */
  readonly preset: 'none' | 'problem+json';
  readonly body: string;
  /** Value of `content-type`; '' leaves Envoy's text/plain. */
  readonly contentType: string;
}

/** A header that weir adds to the upstream request. */
export interface AddedHeader {
  /** In lower case. */
  readonly key: string;
  readonly value: string;
}

/** The marks of requests that are over a soft limit (`on_over`). Such requests pass. */
export interface OnOver {
  readonly requestHeaders: readonly AddedHeader[];
  /** A JSON object for the dynamic metadata; undefined without it. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/** Values of `hold.from`: where the held hits come from if they are not a fixed `amount`. */
export const HOLD_SOURCES = ['first_call'] as const;

/** Values of `hold.unknown`. */
export const UNKNOWN_USES = ['keep', 'free'] as const;

/** Values of `hold.pair`. */
export const HOLD_PAIRS = ['token', 'oldest'] as const;

/** Settings of the holds of a limit (`hold` and `concurrency`). */
export interface HoldSpec {
  /** Time after which a hold without an end expires, in milliseconds (`expires_after`). */
  readonly expiresAfterMillis: number;
  /**
   * Hits that a request holds: a fixed number (`amount`), or undefined for the hits of the first call (`from:
   * first_call`), which are also the slots of a limit on concurrent requests.
   */
  readonly amount: number | undefined;
  /** Whether the hits of a hold with an unknown use stay taken (`keep`) or are given back (`free`). */
  readonly unknown: (typeof UNKNOWN_USES)[number];
  /**
   * Whether the end of a request settles the holds in its hold token, or the `oldest` hold of its bucket. In the second
   * case, a call with 0 hits starts a request, and any other call is an end.
   */
  readonly pair: (typeof HOLD_PAIRS)[number];
  /** Seconds after which callers that a concurrency limit denies should retry (`retry_after`); undefined if unknown. */
  readonly retryAfterSeconds: number | undefined;
}

/**
 * The specification of a limit: a `rate_limit` or an item of `rate_limits`, including settings that it inherits from
 * its node and file. Plain data; with its place in the tree it becomes a {@link Rule}.
 */
export interface RuleSpec {
  /** `rate_limit.name`, or '' without one. */
  readonly name: string;
  /**
   * Absent for `unlimited: true`. If numbers come from a plan, this is the rate of customers without a row.
   */
  readonly rate: RateSpec | undefined;
  /** The rate, if numbers come from the plan of the customer. */
  readonly plan: PlanRate | undefined;
  /** Absent for a limit whose takes are final. */
  readonly hold: HoldSpec | undefined;
  /** The classes of callers that share the bucket; undefined if all callers of the bucket have the same limit. */
  readonly priorities: PrioritySpec | undefined;
  /** The leases of the rule, its file or the environment. The limit leases only if its rate has a `lease`. */
  readonly lease: LeaseSpec | undefined;
  readonly phase: PhaseSchedule;
  /** `shadow_mode: true` answers like the monitoring phase, in every phase. */
  readonly shadowMode: boolean;
  /** `quota_mode: true` denies only if all matched quota rules of the request are over their limits. */
  readonly quotaMode: boolean;
  /** Names of rules that do not apply to a request that this rule matches. */
  readonly replaces: readonly string[];
  readonly onStoreFailure: StoreFailurePolicy;
  /**
   * Percentage of denials that are enforced, 0 to 100 (`enforce_percent`); others are answered as in the monitoring
   * phase.
   */
  readonly enforcePercent: number;
  /** Headers of the rule; undefined to use the file's headers. */
  readonly responseHeaders: HeaderFamilies | undefined;
  /** Headers of the request upstream. */
  readonly requestHeaders: HeaderFamilies | undefined;
  readonly deniedResponse: DeniedResponse | undefined;
  /** The marks of a soft limit, which never denies; undefined for any other limit. */
  readonly onOver: OnOver | undefined;
  /** Name of the next limit of the list, which pays for the requests that do not fit (`then`); '' without it. */
  readonly nextLimit: string;
  /** `metadata` of the node, a JSON object; undefined without it. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/** The names of a rule, which depend on its place in the tree and on the secret keys. */
export interface RuleNames {
  /**
   * The place of the rule, with keys and values of the policy, never of requests: `tenant/resource_group=user-chats`.
   * An item of a list has its name or number: `tenant[daily]`, `tenant[2]`.
   */
  readonly path: string;
  /** Names the rule in hold tokens; see policy/names/stat-name.ts. '' for a rule without holds. */
  readonly digest: string;
  /**
   * Name of the rule in the reference's statistics, starting with the domain: `mongo_cps.database_users`. '' if the
   * name contains values from the request (`detailed_metric`, `value_to_metric`); Match.statNames then contains the
   * name.
   */
  readonly statName: string;
  /**
   * The part of a bucket's name after that of the node: its position, unless it is a single limit, and its shape,
   * unless it is a token bucket; see policy/names/bucket-key.ts.
   */
  readonly bucketSuffix: string;
  /**
   * The part that distinguishes the limits of a list in statistics: `.daily`, `.2`; '' for a single limit.
   * {@link statName} includes it.
   */
  readonly statSuffix: string;
}

/** Adds decisions of one rule to the numbers of its series, which it has found once. */
export interface RuleMetrics {
  /** Identifies the counts that it adds to. */
  readonly owner: object;
  /**
   * Counts a decided descriptor. `wouldBeThrottled`: the hits did not fit, but the phase or shadow mode allowed the
   * descriptor. Soft limits over their limit are counted separately.
   */
  countDecision(overLimit: boolean, wouldBeThrottled: boolean): void;
  /**
   * Counts a descriptor in the statistics of envoyproxy/ratelimit, where the rule has the name `stat` (see
   * Match.statNames). `outcome` is undefined if nothing decided the descriptor. `shadowed`: the hits did not fit, but
   * `shadow_mode` or the phase allowed the descriptor.
   */
  countReference(stat: string, take: Take, outcome: TakeOutcome | undefined, shadowed: boolean): void;
}

/** The parts of answers that depend only on the rule. The numbers are those of the protocol. */
export interface RuleAnswer {
  readonly currentLimit: {
    readonly name: string;
    readonly requestsPerUnit: number;
    readonly unit: 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7;
    encoded: Uint8Array | null;
  };
  /** `x-ratelimit-limit`. */
  readonly limitHeader: { readonly key: string; readonly value: number; encoded: Uint8Array | null };
}

/** The class of `priorities` that a rule limits. */
interface RuleClass {
  /** '' for a limit without classes, or for the limit as a whole. */
  readonly className: string;
  /** The limit as a whole, of which the class can use a part; undefined if the rule is not the limit of a class. */
  readonly shared: Rule | undefined;
}

const NO_CLASS: RuleClass = { className: '', shared: undefined };

/** A compiled limit. Immutable, except for {@link counter} and {@link answer}; it lives as long as its tree. */
export interface Rule extends Omit<RuleSpec, 'rate'>, RuleNames, RuleClass {
  /** Absent for `unlimited: true`. */
  readonly rate: Rate | undefined;
  /**
   * Whether the limit denies each request that does not fit, at any time. The settings SHADOW_MODE and QUOTA_MODE may
   * still change that.
   */
  readonly isAlwaysEnforced: boolean;
  /** Created by the service with its first answer. */
  answer: RuleAnswer | undefined;
  /** The counter of the service that counted the rule last. Found with the rule, it costs no lookup by name. */
  counter: RuleMetrics | undefined;
}

/**
 * Returns whether a rule may deny requests in its active phase. Unlimited rules, soft limits, limits that spill
 * (`then`), and rules in shadow mode or with `enforce_percent: 0` never do.
 */
export function canDeny({ rate, onOver, nextLimit, shadowMode, enforcePercent }: Rule): boolean {
  if (rate === undefined || onOver !== undefined || nextLimit !== '') return false;
  return !shadowMode && enforcePercent > 0;
}

/** Returns the last limit of the chain (`then`) that contains the rule at `index`, which decides for the chain. */
export function lastOfChain(rules: readonly Rule[], index: number): Rule {
  let at = index;
  while (rules[at]?.nextLimit !== '' && at + 1 < rules.length) at++;
  return rules[at] as Rule;
}

/** Returns the limits of a chain (`then`) before the rule at `index`, which pays for them. */
export function limitsBefore(rules: readonly Rule[], index: number): readonly Rule[] {
  let first = index;
  while (first > 0 && rules[first - 1]?.nextLimit !== '') first--;
  return rules.slice(first, index);
}

/**
 * Returns the rule for `spec` at its place. All rules have one shape, so that the hot path stays monomorphic.
 * `isBlocked`: the rule denies all requests of a blocked customer.
 */
export function namedRule(
  spec: Omit<RuleSpec, 'rate'>,
  rate: Rate | undefined,
  names: RuleNames,
  isBlocked = false,
  { className, shared } = NO_CLASS,
): Rule {
  const isEnforced =
    !spec.shadowMode && spec.enforcePercent === 100 && spec.phase.activeAtMicros === -Infinity;
  const isOrdinary = !spec.quotaMode && spec.onOver === undefined && spec.nextLimit === '' && !isBlocked;
  return {
    name: spec.name,
    path: names.path,
    digest: names.digest,
    rate,
    plan: spec.plan,
    hold: spec.hold,
    priorities: spec.priorities,
    lease: spec.lease,
    className,
    shared,
    phase: spec.phase,
    shadowMode: spec.shadowMode,
    quotaMode: spec.quotaMode,
    replaces: spec.replaces,
    onStoreFailure: spec.onStoreFailure,
    enforcePercent: spec.enforcePercent,
    responseHeaders: spec.responseHeaders,
    requestHeaders: spec.requestHeaders,
    deniedResponse: spec.deniedResponse,
    onOver: spec.onOver,
    nextLimit: spec.nextLimit,
    metadata: spec.metadata,
    statName: names.statName,
    bucketSuffix: names.bucketSuffix,
    statSuffix: names.statSuffix,
    isAlwaysEnforced: isEnforced && isOrdinary,
    answer: undefined,
    counter: undefined,
  };
}

export function ruleSpecOf(rule: Rule): RuleSpec {
  // The remaining fields are the specification.
  const { path, digest, statName, bucketSuffix, statSuffix, rate, ...rest } = rule;
  const { isAlwaysEnforced, answer, counter, className, shared, ...said } = rest;
  return { rate: rate === undefined ? undefined : rateSpecOf(rate), ...said };
}
