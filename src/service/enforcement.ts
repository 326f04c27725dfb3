import type { Enforcement } from '../limiter/bucket-store.js';
import { isBlocked } from '../policy/plans/plan-rules.js';
import { type PhaseSchedule, phaseAt, type Rule } from '../policy/rule.js';
import {
  chainsOf,
  type DescriptorState,
  isSoft,
  type MatchedTake,
  type RequestContext,
} from './request-context.js';

/** The properties of a request that its enforcement depends on; see RequestContext. */
interface EnforcementContext {
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
 * deny only together, so drawForQuotas draws for all of them at once.
 */
export function enforcementOfRule(rule: Rule, quota: boolean, context: EnforcementContext): Enforcement {
  const ruleEnforcement = enforcementOf(rule.phase, rule.shadowMode, quota, context);
  if (rule.enforcePercent === 100 || ruleEnforcement !== 'enforce') return ruleEnforcement;
  return context.percent() < rule.enforcePercent ? ruleEnforcement : 'observe';
}

const NO_RULES: readonly Rule[] = [];

/** Returns the rules of a decision that may replace other rules: none for a limit override. */
function replacingRules({ match, overridden }: DescriptorState): readonly Rule[] {
  return overridden ? NO_RULES : match.rules;
}

/**
 * Removes takes whose rule another rule `replaces`. A block stays, because a rule that does not know the customer would
 * otherwise let its requests pass.
 */
function applyReplaces(states: readonly DescriptorState[]): void {
  const names = new Set<string>();
  for (const state of states) {
    for (const rule of replacingRules(state)) for (const name of rule.replaces) names.add(name);
  }
  for (const state of states) {
    state.oldestSettlements = state.oldestSettlements.filter(({ name }) => name === '' || !names.has(name));
    // The limits of a chain are replaced together, because the last one decides for all of them.
    state.takes = chainsOf(state.takes)
      .filter((chain) => !chain.some((take) => isReplaced(take, names)))
      .flat();
  }
}

function isReplaced({ rule, name }: MatchedTake, names: ReadonlySet<string>): boolean {
  return name !== '' && names.has(name) && !(rule !== undefined && isBlocked(rule));
}

/**
 * Returns whether a decision counts as a quota that always allows, so that no quota denies the request, as in the
 * reference. This applies to a quota in shadow mode and, with QUOTA_MODE, to a descriptor without a limit.
 */
export function isPassingQuota(state: DescriptorState, quotaMode: boolean): boolean {
  const { takes, unlimited, onlySettles } = state;
  if (onlySettles) return false;
  if (takes.length === 0) return quotaMode && !unlimited;
  // A node with only soft limits is like a node without a limit.
  let passes = quotaMode;
  for (let at = 0; at < takes.length; at++) {
    const take = takes[at] as MatchedTake;
    if (isSoft(take)) continue;
    if (!take.quota || !take.shadow) return false;
    passes = true;
  }
  return passes;
}

/**
 * Applies `enforce_percent` to quotas. They deny only together, so one draw is compared with their highest percentage.
 * Otherwise a draw could drop the quota that is not full, and the others would deny.
 */
function drawForQuotas(context: RequestContext): void {
  const quotas = context.states.flatMap(({ takes }) =>
    takes.filter(({ ruleEnforcement }) => ruleEnforcement === 'quota'),
  );
  const percent = quotas.reduce((max, { rule }) => Math.max(max, rule?.enforcePercent ?? 100), 0);
  if (quotas.length === 0 || percent === 100 || context.percent() < percent) return;
  for (const take of quotas) {
    take.ruleEnforcement = 'observe';
    take.enforcement = 'observe';
  }
}

/** Sets quotas to `observe` if another one always allows: then they cannot deny the request. */
function applyPassingQuotas({ states, options }: RequestContext): void {
  if (!states.some((state) => isPassingQuota(state, options.answers.quotaMode))) return;
  for (const { takes } of states) {
    for (const take of takes) if (take.enforcement === 'quota') take.enforcement = 'observe';
  }
}

/** Applies the effects of decisions on each other: rules that replace others, and quotas that deny together. */
export function applyReplacesAndQuotas(context: RequestContext): void {
  const { states } = context;
  let replaces = false;
  let quotas = false;
  let drawn = false;
  for (let i = 0; i < states.length; i++) {
    const state = states[i] as DescriptorState;
    const rules = replacingRules(state);
    for (let at = 0; at < rules.length; at++) if ((rules[at] as Rule).replaces.length > 0) replaces = true;
    for (let at = 0; at < state.takes.length; at++) {
      const { quota, rule } = state.takes[at] as MatchedTake;
      if (!quota) continue;
      quotas = true;
      if (rule !== undefined && rule.enforcePercent < 100) drawn = true;
    }
  }
  if (replaces) applyReplaces(states);
  if (!quotas) return;
  if (drawn) drawForQuotas(context);
  applyPassingQuotas(context);
}
