import type { PolicySet } from '../../policy/policy-set.js';
import { withTimeout } from '../../runtime/turns.js';
import type { ChangeSummary } from '../diff/change-summary.js';
import { policyTask } from './policy-task.js';

/**
 * Maximum duration of a comparison in milliseconds. Comparing thousands of patterns may take longer, which is left to
 * `weir diff`.
 */
const MAX_COMPARISON_MS = 20_000;

/** Compares policies in a worker thread. A comparison ends after {@link MAX_COMPARISON_MS}. */
export class PolicyDiffer {
  #running = new AbortController();

  /**
   * Returns the changes in `after`. Rejects with an Error that gives the reason if they are unknown. Only one
   * comparison may run at a time.
   *
   * @param nowMicros wall clock
   */
  async diff(before: PolicySet, after: PolicySet, nowMicros: number): Promise<ChangeSummary> {
    this.#running = new AbortController();
    const { signal } = this.#running;
    const sets = [differing(before, after), differing(after, before)];
    const script = 'src/config/threads/diff-thread.js';
    const changes = policyTask<number, ChangeSummary>(script, 'compares policies', nowMicros, sets, signal);
    return withTimeout(MAX_COMPARISON_MS, changes, () => {
      this.close();
      throw new Error(`the comparison took longer than ${MAX_COMPARISON_MS / 1000} s`);
    });
  }

  /** Cancels the running comparison, which then rejects. */
  close(): void {
    this.#running.abort();
  }
}

/** Returns the domains of one configuration that are not identical in the other. */
function differing({ domains, version }: PolicySet, other: PolicySet): PolicySet {
  return {
    domains: new Map([...domains].filter(([domain, policy]) => other.domains.get(domain) !== policy)),
    version,
  };
}
