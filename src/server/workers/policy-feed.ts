import { policyItems, takesLong } from '../../config/threads/policy-transfer.js';
import { cutSlices } from '../../config/threads/slices.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { turn } from '../../runtime/turns.js';
import type { SlicedPolicies, ToWorker } from './messages.js';

/** Hands the policies in force to the workers: all of them to one that starts, what changed to those that run. */
export class PolicyFeed {
  readonly #current: () => PolicySet | undefined;
  readonly #broadcast: (message: ToWorker) => void;
  readonly #caughtUp: () => Promise<void>;
  /** What the workers have. */
  #sent: PolicySet | undefined;
  #sending = false;
  #whole: { readonly of: PolicySet; readonly sliced: SlicedPolicies } | undefined;

  /**
   * `broadcast` reaches every worker that got what `whole` said when it started; `caughtUp` resolves when they have
   * taken nearly all of it.
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

  /** For a worker that starts; undefined while there is no policy. */
  whole(): SlicedPolicies | undefined {
    const of = this.#current();
    if (of === undefined) return undefined;
    if (this.#whole?.of !== of) {
      this.#whole = {
        of,
        sliced: { version: of.version, slices: [...cutSlices(policyItems(of), takesLong)] },
      };
    }
    return this.#whole.sliced;
  }

  /** Sends what is in force now, if that is not on its way already. */
  async send(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    this.#whole = undefined;
    for (let next = this.#current(); next !== undefined && next !== this.#sent; next = this.#current()) {
      const before = this.#sent;
      this.#sent = next;
      this.#broadcast({ kind: 'policies_begin' });
      const items = policyItems(next, (policy) => before?.domains.get(policy.domain) === policy);
      for (const slice of cutSlices(items, takesLong)) {
        this.#broadcast({ kind: 'policies_slice', slice });
        await turn();
        // Or connections and questions would wait in the channel behind all of them.
        await this.#caughtUp();
      }
      this.#broadcast({ kind: 'policies_end', version: next.version });
    }
    this.#sending = false;
  }
}
