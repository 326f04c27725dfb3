import type { Enforcement } from '../../limiter/bucket-store.js';
import { type PhaseSchedule, phaseAt, type Rule } from '../../policy/rule.js';

/** The properties of a request that its enforcement depends on; see RequestContext. */
export interface EnforcementContext {
  readonly wallMicros: number;
  percent(): number;
}

/** Returns the effect of a limit, or of a limit override, in its phase. */
export function enforcementOf(
  phase: PhaseSchedule,
  shadow: boolean,
  quota: boolean,
  context: EnforcementContext,
): Enforcement {
  if (shadow) return 'observe';
  // Most limits are always active, so that the clock need not be read.
  const isActive = phase.activeAtMicros === -Infinity || phaseAt(phase, context.wallMicros) === 'active';
  if (!isActive) return 'observe';
  return quota ? 'quota' : 'enforce';
}

/**
 * Returns the enforcement of a rule in this request; with `enforce_percent` some requests are only observed. Quotas
 * deny only together, so quotas-and-replaces.ts draws for all of them at once.
 */
export function enforcementOfRule(rule: Rule, quota: boolean, context: EnforcementContext): Enforcement {
  const ruleEnforcement = enforcementOf(rule.phase, rule.shadowMode, quota, context);
  if (rule.enforcePercent === 100 || ruleEnforcement !== 'enforce') return ruleEnforcement;
  return context.percent() < rule.enforcePercent ? ruleEnforcement : 'observe';
}
