import { isPlanned } from './plans/planned-rules.js';
import { canDeny, type PhaseSchedule, type Rule } from './rule.js';

/** A rule that is active from `activeAtMicros` on, for `percent` of all requests. */
interface Denier {
  readonly activeAtMicros: number;
  readonly percent: number;
}

/** A node that a request may have matched. */
export interface PossibleNode {
  readonly phase: PhaseSchedule;
  readonly rules: readonly Rule[];
  /** See {@link PolicyNode.hasCustomer}. */
  readonly hasCustomer: boolean;
}

/** Returns whether a rule is always active for every request, so that no other rule adds anything. */
function isCertain({ activeAtMicros, percent }: Denier): boolean {
  return activeAtMicros === Number.NEGATIVE_INFINITY && percent === 100;
}

/**
 * Whether any of some rules may deny a request whose rules are unknown. Rules that cannot deny do not count, see
 * {@link canDeny}. A row of plans may set the phase of a rule. If it blocks the customer, soft limits deny, too.
 */
export class PossibleDenial {
  /** Rules that no other one dominates: the higher the percentage, the later the start. */
  private readonly deniers: readonly Denier[];
  private readonly nodes: () => Iterable<PossibleNode>;
  /** When the first of {@link nodes} becomes active; undefined until it is needed. */
  private activeAtMicros: number | undefined;

  /**
   * Reads the rules of `nodes` up to the first that is always active. Reads the phases of all nodes, even without
   * rules, when they are needed. `isBlocked` tells whether a row of plans may block the customer.
   */
  constructor(nodes: () => Iterable<PossibleNode>, isBlocked: boolean) {
    this.deniers = withoutDominated(deniersOf(nodes(), isBlocked));
    this.nodes = nodes;
  }

  /** Returns whether a limit override at one of the nodes may deny a request; only the phase of the node matters. */
  overrideMayDeny(wallMicros: number): boolean {
    this.activeAtMicros ??= soonestActive(this.nodes());
    return wallMicros >= this.activeAtMicros;
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

function* deniersOf(nodes: Iterable<PossibleNode>, isBlocked: boolean): Generator<Denier> {
  for (const { rules, hasCustomer } of nodes) {
    for (const [index, rule] of rules.entries()) {
      if (!canDeny(hasCustomer && isBlocked ? { ...rule, onOver: undefined } : rule)) continue;
      // A row may also set the phase.
      const activeAtMicros = isPlanned(rules, index) ? Number.NEGATIVE_INFINITY : rule.phase.activeAtMicros;
      yield { activeAtMicros, percent: rule.enforcePercent };
    }
  }
}

function soonestActive(nodes: Iterable<PossibleNode>): number {
  let soonest = Number.POSITIVE_INFINITY;
  for (const { phase } of nodes) {
    soonest = Math.min(soonest, phase.activeAtMicros);
    if (soonest === Number.NEGATIVE_INFINITY) break;
  }
  return soonest;
}

function withoutDominated(deniers: Iterable<Denier>): readonly Denier[] {
  const soonest = new Map<number, number>();
  for (const denier of deniers) {
    if (isCertain(denier)) return [denier];
    const known = soonest.get(denier.percent) ?? Number.POSITIVE_INFINITY;
    soonest.set(denier.percent, Math.min(known, denier.activeAtMicros));
  }
  const kept: Denier[] = [];
  for (const [percent, activeAtMicros] of [...soonest].sort(([one], [other]) => other - one)) {
    const last = kept.at(-1);
    if (last === undefined || activeAtMicros < last.activeAtMicros) kept.push({ activeAtMicros, percent });
  }
  return kept;
}
