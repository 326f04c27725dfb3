import type { Rule } from '../limiter/rule.js';

/** A rule in force from `activeAtMicros` on, for `percent` of all requests. */
interface Denier {
  readonly activeAtMicros: number;
  readonly percent: number;
}

/** In force for every request, always: no other rule adds anything to it. */
function isCertain({ activeAtMicros, percent }: Denier): boolean {
  return activeAtMicros === Number.NEGATIVE_INFINITY && percent === 100;
}

/**
 * Whether one of some rules may deny a request: for requests that nobody can say which rule they match. Rules that deny nothing (unlimited, in shadow
 * mode, candidates, `enforce_percent: 0`) do not count.
 */
export class PossibleDenial {
  /** The higher the share, the later it holds: only what is not outdone. */
  private readonly deniers: readonly Denier[];
  /** When the first of all rules becomes active, whatever it denies. */
  private readonly activeAtMicros: number;

  /** Reads `rules` up to the first that is in force for good. */
  constructor(rules: Iterable<Rule>) {
    const { deniers, activeAtMicros } = notOutdone(rules);
    this.deniers = deniers;
    this.activeAtMicros = activeAtMicros;
  }

  /** Whether a limit override in the place of one of the rules may deny a request: all it needs of them is their phase. */
  overrideMayDeny(wallMicros: number): boolean {
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

function notOutdone(rules: Iterable<Rule>): {
  readonly deniers: readonly Denier[];
  readonly activeAtMicros: number;
} {
  const soonest = new Map<number, number>();
  let activeAtMicros = Number.POSITIVE_INFINITY;
  for (const rule of rules) {
    activeAtMicros = Math.min(activeAtMicros, rule.phase.activeAtMicros);
    if (rule.candidate || rule.shadowMode || rule.rate === undefined || rule.enforcePercent === 0) continue;
    const denier = { activeAtMicros: rule.phase.activeAtMicros, percent: rule.enforcePercent };
    if (isCertain(denier)) return { deniers: [denier], activeAtMicros };
    const known = soonest.get(denier.percent) ?? Number.POSITIVE_INFINITY;
    soonest.set(denier.percent, Math.min(known, denier.activeAtMicros));
  }
  const kept: Denier[] = [];
  for (const [percent, activeAtMicros] of [...soonest].sort(([one], [other]) => other - one)) {
    const last = kept.at(-1);
    if (last === undefined || activeAtMicros < last.activeAtMicros) kept.push({ activeAtMicros, percent });
  }
  return { deniers: kept, activeAtMicros };
}
