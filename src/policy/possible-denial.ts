import type { PhaseSchedule, Rule } from './rule.js';

/** A rule in force from `activeAtMicros` on, for `percent` of all requests. */
interface Denier {
  readonly activeAtMicros: number;
  readonly percent: number;
}

/** A node of a policy that a request may have met. */
export interface PossibleNode {
  readonly phase: PhaseSchedule;
  readonly rules: readonly Rule[];
}

/** In force for every request, always: no other rule adds anything to it. */
function isCertain({ activeAtMicros, percent }: Denier): boolean {
  return activeAtMicros === Number.NEGATIVE_INFINITY && percent === 100;
}

/**
 * Whether one of some rules may deny a request: for requests that nobody can say which rule they match. Rules that deny
 * nothing (unlimited, in shadow mode, candidates, `enforce_percent: 0`) do not count.
 */
export class PossibleDenial {
  /** The higher the share, the later it holds: only what is not outdone. */
  private readonly deniers: readonly Denier[];
  private readonly nodes: () => Iterable<PossibleNode>;
  /** When the first of {@link nodes} becomes active; undefined until somebody asks. */
  private activeAtMicros: number | undefined;

  /**
   * Reads the rules of `nodes` up to the first that is in force for good, and the phases of all, which need not have
   * rules, when they are asked for.
   */
  constructor(nodes: () => Iterable<PossibleNode>) {
    this.deniers = withoutDominated(rulesOf(nodes()));
    this.nodes = nodes;
  }

  /** Whether a limit override at one of the nodes may deny a request: all it needs of a node is its phase. */
  overrideMayDeny(wallMicros: number): boolean {
    this.activeAtMicros ??= soonestActive(this.nodes());
    return wallMicros >= this.activeAtMicros;
  }

  /** `percent` draws the number that `enforce_percent` is held against; asked only where it matters. */
  mayDeny(wallMicros: number, percent: () => number): boolean {
    for (const denier of this.deniers) {
      if (wallMicros < denier.activeAtMicros) continue;
      if (denier.percent === 100 || percent() < denier.percent) return true;
    }
    return false;
  }
}

function* rulesOf(nodes: Iterable<PossibleNode>): Generator<Rule> {
  for (const { rules } of nodes) yield* rules;
}

function soonestActive(nodes: Iterable<PossibleNode>): number {
  let soonest = Number.POSITIVE_INFINITY;
  for (const { phase } of nodes) {
    soonest = Math.min(soonest, phase.activeAtMicros);
    if (soonest === Number.NEGATIVE_INFINITY) break;
  }
  return soonest;
}

function withoutDominated(rules: Iterable<Rule>): readonly Denier[] {
  const soonest = new Map<number, number>();
  for (const rule of rules) {
    if (rule.candidate || rule.shadowMode || rule.rate === undefined || rule.enforcePercent === 0) continue;
    const denier = { activeAtMicros: rule.phase.activeAtMicros, percent: rule.enforcePercent };
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
