import { needsOwnSlice, policyItems } from '../../config/threads/policy-transfer.js';
import { cutSlices } from '../../config/threads/slices.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { turn } from '../../runtime/turns.js';
import type { SlicedPolicies, ToWorker } from './messages.js';

/** Sends the policies in effect to the workers: all policies to a new worker, and changed policies to running ones. */
export class PolicyFeed {
  readonly #current: () => PolicySet | undefined;
  readonly #broadcast: (message: ToWorker) => void;
  readonly #caughtUp: () => Promise<void>;
  /** Policies that the workers have. */
  #sent: PolicySet | undefined;
  #sending = false;
  #whole: { readonly of: PolicySet; readonly sliced: SlicedPolicies } | undefined;

  /**
   * @param broadcast sends to each worker that got the result of `whole` when it started
   *
   * @param caughtUp resolves once the workers have processed nearly everything
   */
  constructor(
    current: () => PolicySet | undefined,
    broadcast: (message: ToWorker) => void,
    caughtUp: () => Promise<void>,
  ) {
    this.#current = current;
    this.#broadcast = broadcast;
    this.#caughtUp = caughtUp;
    this.#sent = current();
  }

  /** Returns all policies for a new worker, or undefined without policies. */
  whole(): SlicedPolicies | undefined {
    const of = this.#current();
    if (of === undefined) return undefined;
    if (this.#whole?.of !== of) {
      this.#whole = {
        of,
        sliced: { version: of.version, slices: [...cutSlices(policyItems(of), needsOwnSlice)] },
      };
    }
    return this.#whole.sliced;
  }

  /** Sends the current policies unless a transfer is already running. */
  async send(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    this.#whole = undefined;
    for (let next = this.#current(); next !== undefined && next !== this.#sent; next = this.#current()) {
      const before = this.#sent;
      this.#sent = next;
      this.#broadcast({ kind: 'policies_begin' });
      const items = policyItems(next, (policy) => before?.domains.get(policy.domain) === policy);
      for (const slice of cutSlices(items, needsOwnSlice)) {
        this.#broadcast({ kind: 'policies_slice', slice });
        await turn();
        // Otherwise connections and calls would wait in the channel behind all slices.
        await this.#caughtUp();
      }
      this.#broadcast({ kind: 'policies_end', version: next.version });
    }
    this.#sending = false;
  }
}
