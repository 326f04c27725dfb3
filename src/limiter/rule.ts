import type { Rate } from './rate.js';

/** One key and value of a descriptor (envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry). */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

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

/** What a rule answers while the store cannot be asked; see README, "When Redis is away". */
export const STORE_FAILURE_POLICIES = ['error', 'allow', 'deny', 'local'] as const;
export type StoreFailurePolicy = (typeof STORE_FAILURE_POLICIES)[number];

/** A compiled `rate_limit` of the policy file. Immutable; lives as long as the tree that holds it. */
export interface Rule {
  /** `rate_limit.name`, '' when it has none. */
  readonly name: string;
  /** Where the rule stands, in keys and policy values only, never request values: `tenant/resource_group=user-chats`. */
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
  /** The node's `metadata`, a JSON object; undefined when it has none. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  /**
   * Name of the rule in the reference's statistics, domain first: `mongo_cps.database_users`. '' where values of the request enter it
   * (`detailed_metric`, `value_to_metric`): then Match.statName tells it.
   */
  readonly statName: string;
}
