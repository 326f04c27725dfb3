import { serialize } from 'node:v8';
import { inBatches, policyItems } from '../../config/threads/policy-transfer.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { PLAN_PARTS, type PlanTable } from '../../policy/plans/plan-table.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { turn } from '../../runtime/turns.js';
import type { PolicySlice, SlicedPolicies, ToWorker } from './messages.js';

/** Number of bytes of a table of plans per slice. */
const PLAN_BYTES_PER_SLICE = 262_144;

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
      this.#whole = { of, sliced: { version: of.version, slices: [...slicesOf(of)] } };
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
      for (const slice of slicesOf(next, (policy) => before?.domains.get(policy.domain) === policy)) {
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

/** Yields policies as bytes. Tables of plans are cut, because processes share no memory. */
function* slicesOf(
  policySet: PolicySet,
  isKnown?: (policy: CompiledPolicy) => boolean,
): Generator<Uint8Array> {
  for (const batch of inBatches(policyItems(policySet, isKnown))) {
    const items: (typeof batch)[number][] = [];
    for (const item of batch) {
      if (item.kind !== 'domain' || item.plans === undefined) items.push(item);
      else {
        for (const slice of planSlices(item.head.domain, item.plans)) yield serialize(slice);
        items.push({ ...item, plans: undefined });
      }
    }
    yield serialize({ kind: 'items', items } satisfies PolicySlice);
  }
}

function* planSlices(domain: string, { slots, keys, values, ...head }: PlanTable): Generator<PolicySlice> {
  const parts = { slots, keys, values };
  const lengths = { slots: slots.length, keys: keys.length, values: values.length };
  yield { kind: 'plans', domain, head, lengths, isByte: keys instanceof Uint8Array };
  for (const part of PLAN_PARTS) {
    const { buffer, byteLength } = parts[part];
    for (let at = 0; at < byteLength; at += PLAN_BYTES_PER_SLICE) {
      const bytes = new Uint8Array(buffer, at, Math.min(PLAN_BYTES_PER_SLICE, byteLength - at));
      yield { kind: 'plan_bytes', domain, part, at, bytes };
    }
  }
}
