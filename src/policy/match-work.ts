import type { Entry } from '../limiter/entry.js';

/**
 * Said by a matcher that would need more steps than are left: the value matches, or it does not, and nobody will know.
 */
export const EXCEEDED: unique symbol = Symbol('exceeded');

/** What cannot be interrupted takes no more steps than this: a millisecond or two. */
const MAX_EXEMPT_STEPS = 300_000;

/**
 * What matching one request may still cost, in steps of some 5 ns of CPU each. Counted, not read from a clock, so that
 * the same request is decided the same way on a busy machine.
 */
export class MatchWork {
  /** Steps that are left; below 0 once more were asked for than there were. */
  remaining: number;
  /**
   * Of the steps taken those that are nobody's fault: what they made is there for later values, too, or they follow
   * from the length of a request alone.
   */
  exempt = 0;
  /** Of those the steps whose work stays: asked the same again, nobody takes them again. Never falls. */
  oneTime = 0;
  /**
   * What a search has found so far that ran out of steps, and goes on from here when the same is asked for with more.
   */
  readonly searches: Search[] = [];

  constructor(steps: number) {
    this.remaining = steps;
  }

  /** Takes `steps`; false when they are not there, and then nothing is left. */
  spend(steps: number): boolean {
    if (steps <= this.remaining) {
      this.remaining -= steps;
      return true;
    }
    this.remaining = -1;
    return false;
  }

  /**
   * Takes `steps` that do not depend on the policy but on the length of the request, which is bounded: they take time,
   * but nobody is denied for them. False when they are too many for one stretch.
   */
  spendExempt(steps: number): boolean {
    if (steps > MAX_EXEMPT_STEPS) return false;
    this.remaining -= steps;
    this.exempt += steps;
    return true;
  }

  /** Takes `steps`, however many, of work that is done already and never again; nobody is denied for them. */
  spendOnce(steps: number): void {
    this.remaining -= steps;
    this.exempt += steps;
    this.oneTime += steps;
  }

  /** The search of `value` in `list`, if one has begun. */
  searchOf(list: object, value: string): Search | undefined {
    for (let i = 0; i < this.searches.length; i++) {
      const search = this.searches[i] as Search;
      if (search.list === list && search.value === value) return search;
    }
    return undefined;
  }
}

/** For those who are in no hurry: tools, and whatever is asked at the start only. */
export function unboundedWork(): MatchWork {
  return new MatchWork(Number.POSITIVE_INFINITY);
}

/** What was found with {@link unboundedWork}. */
export function assertFound<Found>(found: Found | typeof EXCEEDED): Found {
  if (found === EXCEEDED) throw new Error('unbounded work was exceeded');
  return found;
}

/** A search that takes longer than a stretch; see {@link MatchWork.searches}. */
export interface Search {
  readonly list: object;
  readonly value: string;
  /** Rises as the search goes on. */
  progress: number;
}

/**
 * Values of so many UTF-16 units enter the name of a bucket as they are, whatever they hold, and for next to nothing.
 */
const MAX_SHORT_VALUE_UNITS = 42;
/** Steps (MatchWork) that the digest of a longer one takes, and each of its units. */
const DIGEST_STEPS = 400;
const UNIT_STEPS = 0.5;

/** Steps that it takes to name a bucket after the value of an entry, as it is or as its digest (bucket-key.ts). */
export function namingSteps({ value }: Entry): number {
  return value.length <= MAX_SHORT_VALUE_UNITS ? 0 : DIGEST_STEPS + value.length * UNIT_STEPS;
}
