import type { StoreFailureAnswer } from '../../limiter/failure-policy.js';

/** Number of answers since the previous read that the store did not decide. */
export interface FailureCounts {
  /** Calls that got an error instead of a decision. */
  readonly errors: number;
  /** Descriptors that `on_store_failure` allowed, denied, or decided with local buckets. */
  readonly failure_allow: number;
  readonly failure_deny: number;
  readonly failure_local: number;
}

export const NO_FAILURES: FailureCounts = { errors: 0, failure_allow: 0, failure_deny: 0, failure_local: 0 };

/** Adds up failure counts. */
export function sumOfFailures(all: readonly FailureCounts[]): FailureCounts {
  const keys = Object.keys(NO_FAILURES) as (keyof FailureCounts)[];
  const sums = keys.map((key) => [key, all.reduce((sum, one) => sum + one[key], 0)]);
  return Object.fromEntries(sums) as Record<keyof FailureCounts, number>;
}

/** Counts failures for one reader. */
export class FailureCounter {
  #counts: { -readonly [Key in keyof FailureCounts]: number } = { ...NO_FAILURES };

  /** Counts a call that got an error. */
  refused(): void {
    this.#counts.errors++;
  }

  /** Counts a descriptor that `on_store_failure` answered. Its call with an error is counted as such. */
  answered(answer: StoreFailureAnswer): void {
    if (answer !== 'error') this.#counts[`failure_${answer}`]++;
  }

  /** Returns the counts since the previous call. */
  take(): FailureCounts {
    const taken = this.#counts;
    this.#counts = { ...NO_FAILURES };
    return taken;
  }
}
