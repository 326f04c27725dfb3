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
  private readonly plans: PossibleRows | undefined;
  /** Rules that no other one dominates: the higher the percentage, the later the start. */
  private deniers: readonly Denier[] = [];
  /** When a node is active for the first time. */
  private nodesActiveAtMicros = Number.POSITIVE_INFINITY;
  private hasRules = false;
  private isEnforced = false;

  constructor(plans: PossibleRows | undefined) {
    this.plans = plans;
  }

  /** Adds a node of the domain. */
  add({ phase, rules, hasCustomer }: PossibleNode): void {
    this.nodesActiveAtMicros = Math.min(this.nodesActiveAtMicros, phase.activeAtMicros);
    const mayBeBlocked = hasCustomer && this.plans?.hasBlocked === true;
    for (const [index, rule] of rules.entries()) {
      const { enforcePercent } = rule;
      this.hasRules = true;
      if (enforcePercent > 0) this.isEnforced = true;
      if (!canDeny(mayBeBlocked ? { ...rule, onOver: undefined } : rule)) continue;
      const mayBeActivated = this.plans?.hasActive === true && isPlanned(rules, index);
      const activeAtMicros = mayBeActivated ? ALWAYS : rule.phase.activeAtMicros;
      this.addDenier({ activeAtMicros, percent: enforcePercent });
    }
  }

  private addDenier(denier: Denier): void {
    if (this.deniers.some((other) => dominates(other, denier))) return;
    this.deniers = [...this.deniers.filter((other) => !dominates(denier, other)), denier];
  }

  /**
   * Returns whether a limit override that was not read may deny: whether a node is active, with or without rules, and
   * the domain enforces any of its rules.
   */
  overrideMayDeny(wallMicros: number): boolean {
    // A domain whose rules all have `enforce_percent: 0` only monitors.
    const onlyMonitors = this.hasRules && !this.isEnforced;
    return !onlyMonitors && wallMicros >= this.nodesActiveAtMicros;
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

function dominates(one: Denier, other: Denier): boolean {
  return one.percent >= other.percent && one.activeAtMicros <= other.activeAtMicros;
}
