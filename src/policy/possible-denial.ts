import type { PlanTable } from './plans/plan-table.js';
import { isPlanned } from './plans/planned-rules.js';
import { canDeny, type PhaseSchedule, type Rule } from './rule.js';

/** The properties of a node that count. */
interface PossibleNode {
  readonly phase: PhaseSchedule;
  readonly rules: readonly Rule[];
  /** See {@link PolicyNode.hasCustomer}. */
  readonly hasCustomer: boolean;
}

/** The properties of the rows of plans that count. */
type PossibleRows = Pick<PlanTable, 'hasBlocked' | 'hasActive'>;

/** Rules that are active from `activeAtMicros` on, for `percent` of all requests. */
interface Denier {
  readonly activeAtMicros: number;
  readonly percent: number;
}

const ALWAYS = Number.NEGATIVE_INFINITY;

/**
 * Whether any rule of a domain may deny a request that was not matched. Rules that cannot deny do not count, see
 * {@link canDeny}. A row of plans may activate a rule with values from the plan, and if it blocks the customer, soft
 * limits deny, too.
 */
export class PossibleDenial {
  /** Rules that no other one dominates: the higher the percentage, the later the start. */
  private readonly deniers: readonly Denier[];
  /** When a limit override at a node may deny for the first time. */
  private readonly overridesActiveAtMicros: number;

  constructor(nodes: Iterable<PossibleNode>, plans: PossibleRows | undefined) {
    const soonest = new Map<number, number>();
    let nodesActiveAt = Number.POSITIVE_INFINITY;
    let hasRules = false;
    let isEnforced = false;
    for (const { phase, rules, hasCustomer } of nodes) {
      nodesActiveAt = Math.min(nodesActiveAt, phase.activeAtMicros);
      for (const [index, rule] of rules.entries()) {
        hasRules = true;
        if (rule.enforcePercent > 0) isEnforced = true;
        const mayBeBlocked = hasCustomer && plans?.hasBlocked === true;
        if (!canDeny(mayBeBlocked ? { ...rule, onOver: undefined } : rule)) continue;
        const { enforcePercent } = rule;
        const mayBeActivated = plans?.hasActive === true && isPlanned(rules, index);
        const activeAt = mayBeActivated ? ALWAYS : rule.phase.activeAtMicros;
        const known = soonest.get(enforcePercent) ?? Number.POSITIVE_INFINITY;
        soonest.set(enforcePercent, Math.min(known, activeAt));
      }
      // No other node adds anything.
      if (nodesActiveAt === ALWAYS && soonest.get(100) === ALWAYS) break;
    }
    this.deniers = withoutDominated(soonest);
    // A domain whose rules all have `enforce_percent: 0` only monitors.
    this.overridesActiveAtMicros = hasRules && !isEnforced ? Number.POSITIVE_INFINITY : nodesActiveAt;
  }

  /**
   * Returns whether a limit override that was not read may deny: whether a node is active, with or without rules, and
   * the domain enforces any of its rules.
   */
  overrideMayDeny(wallMicros: number): boolean {
    return wallMicros >= this.overridesActiveAtMicros;
  }

  /**
   * Returns whether any rule may deny. `percent` draws the number to compare with `enforce_percent`, and is called only
   * if needed.
   */
  mayDeny(wallMicros: number, percent: () => number): boolean {
    for (const denier of this.deniers) {
      if (wallMicros < denier.activeAtMicros) continue;
      if (denier.percent === 100 || percent() < denier.percent) return true;
    }
    return false;
  }
}

function withoutDominated(soonest: ReadonlyMap<number, number>): readonly Denier[] {
  const kept: Denier[] = [];
  for (const [percent, activeAtMicros] of [...soonest].sort(([one], [other]) => other - one)) {
    const last = kept.at(-1);
    if (last === undefined || activeAtMicros < last.activeAtMicros) kept.push({ activeAtMicros, percent });
  }
  return kept;
}
