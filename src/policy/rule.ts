import type { StoreFailurePolicy } from '../limiter/entry.js';
import type { Rate } from '../limiter/rate.js';

/** Phases in which a policy is introduced; see README, "Phases". */
export const PHASES = ['monitoring', 'grace_period', 'active'] as const;
export type Phase = (typeof PHASES)[number];

/**
 * When each phase begins, as wall clock microseconds. Monitoring holds before the first of them. A fixed phase has -Infinity
 * where it begins and +Infinity for what never comes.
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

/** Which header families a file or a rule asks for in `response_headers`. */
export interface ResponseHeaders {
  readonly xRateLimit: boolean;
  readonly retryAfter: boolean;
  /** `ratelimit-limit`, `-remaining` and `-reset` (draft-ietf-httpapi-ratelimit-headers-03). */
  readonly rateLimitDraft03: boolean;
  /** `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-11). */
  readonly rateLimit: boolean;
}

/** What a denied caller gets beside the status (`denied_response`). */
export interface DeniedResponse {
  /** `problem+json`: the problem details of RFC 9457; `body` is '' then. */
  readonly preset: 'none' | 'problem+json';
  readonly body: string;
  /** Value of `content-type`; '' leaves Envoy's text/plain. */
  readonly contentType: string;
}

/**
 * A compiled limit of the policy file: a `rate_limit`, an item of `rate_limits`, or a `candidate`. Immutable; lives as long as the tree that
 * holds it.
 */
export interface Rule {
  /** `rate_limit.name`, '' when it has none. */
  readonly name: string;
  /**
   * Where the rule stands, in keys and policy values only, never request values: `tenant/resource_group=user-chats`; an item of a list with its
   * name or number, `tenant[daily]`, `tenant[2]`. A candidate has the path of its node.
   */
  readonly path: string;
  /** Absent for `unlimited: true`. */
  readonly rate: Rate | undefined;
  readonly phase: PhaseSchedule;
  /** `shadow_mode: true` answers as the monitoring phase does, whatever the phase. */
  readonly shadowMode: boolean;
  /** `quota_mode: true` denies only if every matched quota rule of the request is over. */
  readonly quotaMode: boolean;
  /** Names of rules that do not apply to a request that this rule matches. */
  readonly replaces: readonly string[];
  readonly onStoreFailure: StoreFailurePolicy;
  /** Share of denials that are enforced, 0 to 100 (`enforce_percent`); the others are answered as in the monitoring phase. */
  readonly enforcePercent: number;
  /** A `candidate`: sees every request of its node, those denied, too, and never changes an answer. */
  readonly candidate: boolean;
  /** The rule's own; undefined: the file's count. */
  readonly responseHeaders: ResponseHeaders | undefined;
  readonly deniedResponse: DeniedResponse | undefined;
  /** The node's `metadata`, a JSON object; undefined when it has none. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  /**
   * Name of the rule in the reference's statistics, domain first: `mongo_cps.database_users`. '' where values of the request enter it
   * (`detailed_metric`, `value_to_metric`): then Match.statName tells it.
   */
  readonly statName: string;
  /**
   * What follows the name of the node's bucket in that of the rule: its place, unless it is a single limit, and its shape, unless it is a token bucket;
   * see policy/names/bucket-key.ts.
   */
  readonly bucketSuffix: string;
  /** What tells the limits of a list apart in statistics: `.daily`, `.2`; '' for a single limit. {@link statName} has it already. */
  readonly statSuffix: string;
}
