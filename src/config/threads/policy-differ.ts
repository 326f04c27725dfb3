import { Worker } from 'node:worker_threads';
import { assetPath } from '../../assets.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { turn, withTimeout } from '../../runtime/turns.js';
import type { ChangeSummary } from '../diff/change-summary.js';
import { policyItems } from './policy-transfer.js';
import { cutSlices } from './slices.js';
import { messageOf } from './thread-message.js';

/** Input of the thread: the domains that may differ, in slices, and their tables of plans. */
export interface DiffRequest {
  readonly before: readonly Uint8Array[];
  readonly after: readonly Uint8Array[];
  readonly tables: readonly PlanTable[];
  /** Wall clock. */
  readonly nowMicros: number;
}

const THREAD = 'src/config/threads/diff-thread.js';
/**
 * Maximum duration of a comparison in milliseconds. Comparing thousands of patterns may take longer, which is left to
 * `weir diff`.
 */
const MAX_COMPARISON_MS = 20_000;

/**
 * Compares policies in a worker thread while this thread decides requests. Policies are sent slice by slice, and the
 * thread has a low priority. A comparison ends after {@link MAX_COMPARISON_MS}.
 */
export class PolicyDiffer {
  #thread: Worker | undefined;
  #closed = false;

  /**
   * Returns the changes in `after`. Rejects with an Error that gives the reason if they are unknown. Only one
   * comparison may run at a time.
   *
   * @param nowMicros wall clock
   */
  async diff(before: PolicySet, after: PolicySet, nowMicros: number): Promise<ChangeSummary> {
    const tables: PlanTable[] = [];
    const request: DiffRequest = {
      before: await slicesOf(differing(before, after), tables),
      after: await slicesOf(differing(after, before), tables),
      tables,
      nowMicros,
    };
    if (this.#closed) throw new Error('the comparison was canceled');
    return this.#run(request);
  }

  /** Cancels the running comparison, which then rejects. */
  close(): void {
    this.#closed = true;
    void this.#thread?.terminate();
  }

  async #run(request: DiffRequest): Promise<ChangeSummary> {
    const transferList = [...request.before, ...request.after].map(({ buffer }) => buffer as ArrayBuffer);
    const thread = new Worker(assetPath(THREAD), { name: 'diff', workerData: request, transferList });
    this.#thread = thread;
    // The comparison must not keep the process running.
    thread.unref();
    return withTimeout(MAX_COMPARISON_MS, messageOf<ChangeSummary>(thread, 'compares policies'), () => {
      void thread.terminate();
      throw new Error(`the comparison took longer than ${MAX_COMPARISON_MS / 1000} s`);
    }).finally(() => {
      this.#thread = undefined;
    });
  }
}

/** Returns the domains of one configuration that are not identical in the other. */
function differing({ domains, version }: PolicySet, other: PolicySet): PolicySet {
  return {
    domains: new Map([...domains].filter(([domain, policy]) => other.domains.get(domain) !== policy)),
    version,
  };
}

/**
 * Returns policies in slices for another thread, and yields to the event loop. Tables of plans are appended to
 * `tables`.
 */
export async function slicesOf(policySet: PolicySet, tables: PlanTable[]): Promise<readonly Uint8Array[]> {
  const slices: Uint8Array[] = [];
  for (const slice of cutSlices(policyItems(policySet, undefined, { prepares: false, tables }))) {
    slices.push(slice);
    await turn();
  }
  return slices;
}
