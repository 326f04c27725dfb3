/** Said by a matcher that would need more steps than are left: the value matches, or it does not, and nobody will know. */
export const EXCEEDED: unique symbol = Symbol('exceeded');

/**
 * What matching one request may still cost, in steps of some 5 ns of CPU each. Counted, not read from a clock, so that the same request is decided
 * the same way on a busy machine.
 */
export class MatchWork {
  /** Steps that are left; below 0 once more were asked for than there were. */
  left: number;

  constructor(steps: number) {
    this.left = steps;
  }

  /** Takes `steps`; false when they are not there, and then nothing is left. */
  spend(steps: number): boolean {
    if (steps <= this.left) {
      this.left -= steps;
      return true;
    }
    this.left = -1;
    return false;
  }
}
