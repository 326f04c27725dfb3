import type { Entry } from '../limiter/entry.js';

/** Result of a matcher that ran out of steps: it is unknown whether the value matches. */
export const EXCEEDED: unique symbol = Symbol('exceeded');

/** Maximum number of steps of work that cannot be interrupted: 1 or 2 ms. */
const MAX_EXEMPT_STEPS = 300_000;

/**
 * The work budget of a request, in steps of about 5 ns of CPU time. Steps are counted rather than measured, so that a
 * busy machine makes the same decisions.
 */
export class MatchWork {
  /** Remaining steps; negative after more were requested than were left. */
  remaining: number;
  /**
   * Steps that are not charged to the request, because their result is kept for later values, or because they depend
   * only on the length of the request.
   */
  exempt = 0;
  /** The part of {@link exempt} whose results are kept, so that they are never repeated. Never decreases. */
  oneTime = 0;
  /** Searches that ran out of steps, and continue when they are requested again with more. */
  readonly searches: Search[] = [];

  constructor(steps: number) {
    this.remaining = steps;
  }

  /** Takes `steps`. Returns false if fewer remain, and then none are left. */
  spend(steps: number): boolean {
    if (steps <= this.remaining) {
      this.remaining -= steps;
      return true;
    }
    this.remaining = -1;
    return false;
  }

  /**
   * Takes `steps` that depend only on the length of the request, which is bounded: they take time, but deny no request.
   * Returns false if they are too many for one slice.
   */
  spendExempt(steps: number): boolean {
    if (steps > MAX_EXEMPT_STEPS) return false;
    this.remaining -= steps;
    this.exempt += steps;
    return true;
  }

  /** Takes any number of `steps` for work that is done and never repeated; they deny no request. */
  spendOnce(steps: number): void {
    this.remaining -= steps;
    this.exempt += steps;
    this.oneTime += steps;
  }

  /** Returns the unfinished search of `value` in `list`, if there is one. */
  searchOf(list: object, value: string): Search | undefined {
    for (let i = 0; i < this.searches.length; i++) {
      const search = this.searches[i] as Search;
      if (search.list === list && search.value === value) return search;
    }
    return undefined;
  }
}

/** Returns an unlimited budget, for tools and for work at the start. */
export function unboundedWork(): MatchWork {
  return new MatchWork(Number.POSITIVE_INFINITY);
}

/** Returns a result that was found with {@link unboundedWork}. */
export function assertFound<Found>(found: Found | typeof EXCEEDED): Found {
  if (found === EXCEEDED) throw new Error('an unlimited matching budget was exceeded');
  return found;
}

/** A search that takes longer than a slice; see {@link MatchWork.searches}. */
export interface Search {
  readonly list: object;
  readonly value: string;
  /** Increases while the search advances. */
  progress: number;
}

/**
 * Maximum length of values that enter a bucket's name unchanged, whatever their characters, at almost no cost, in
 * UTF-16 units.
 */
const MAX_SHORT_VALUE_UNITS = 42;
/** Steps (MatchWork) for the digest of a longer value, and for each of its units. */
const DIGEST_STEPS = 400;
const UNIT_STEPS = 0.5;

/** Returns the steps for adding the value of an entry, or its digest, to a bucket's name (bucket-key.ts). */
export function namingSteps({ value }: Entry): number {
  return value.length <= MAX_SHORT_VALUE_UNITS ? 0 : DIGEST_STEPS + value.length * UNIT_STEPS;
}
