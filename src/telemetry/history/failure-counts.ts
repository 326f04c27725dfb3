import type { StoreFailureAnswer } from '../../limiter/failure-policy.js';

/** What was answered without a decision of the store, since it was asked last. */
export interface FailureCounts {
  /** Calls that got an error and no decision. */
  readonly errors: number;
  /** Descriptors that `on_store_failure` let pass, denied, or had decided by buckets in memory. */
  readonly failure_allow: number;
  readonly failure_deny: number;
  readonly failure_local: number;
}

export const NO_FAILURES: FailureCounts = { errors: 0, failure_allow: 0, failure_deny: 0, failure_local: 0 };

/** The sum of all of them. */
export function sumOfFailures(all: readonly FailureCounts[]): FailureCounts {
  const sumOf = (key: keyof FailureCounts): number => all.reduce((sum, one) => sum + one[key], 0);
  return {
    errors: sumOf('errors'),
    failure_allow: sumOf('failure_allow'),
    failure_deny: sumOf('failure_deny'),
    failure_local: sumOf('failure_local'),
  };
}

/** Counts them for one asker. */
export class NewFailures {
  #errors = 0;
  readonly #answers: Record<StoreFailureAnswer, number> = { error: 0, allow: 0, deny: 0, local: 0 };

  /** A call got an error. */
  refused(): void {
    this.#errors++;
  }

  /** `on_store_failure` answered a descriptor. */
  answered(answer: StoreFailureAnswer): void {
    this.#answers[answer]++;
  }

  /** What was counted since this was asked last. */
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
