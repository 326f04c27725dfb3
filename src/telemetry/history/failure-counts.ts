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
  const sumOf = (key: keyof FailureCounts): number => all.reduce((sum, one) => sum + one[key], 0);
  return {
    errors: sumOf('errors'),
    failure_allow: sumOf('failure_allow'),
    failure_deny: sumOf('failure_deny'),
    failure_local: sumOf('failure_local'),
  };
}

/** Counts failures for one reader. */
export class FailureCounter {
  #errors = 0;
  readonly #answers: Record<StoreFailureAnswer, number> = { error: 0, allow: 0, deny: 0, local: 0 };

  /** Counts a call that got an error. */
  refused(): void {
    this.#errors++;
  }

  /** Counts a descriptor that `on_store_failure` answered. */
  answered(answer: StoreFailureAnswer): void {
    this.#answers[answer]++;
  }

  /** Returns the counts since the previous call. */
  take(): FailureCounts {
    const { allow, deny, local } = this.#answers;
    const taken = {
      errors: this.#errors,
      failure_allow: allow,
      failure_deny: deny,
      failure_local: local,
    };
    this.#errors = 0;
    this.#answers.allow = this.#answers.deny = this.#answers.local = 0;
    return taken;
  }
}
