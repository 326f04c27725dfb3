import { Worker } from 'node:worker_threads';
import { assetPath } from '../../assets.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { turn } from '../../runtime/turns.js';
import { threadError } from '../../working-directory.js';
import type { ChangeSummary } from '../diff/change-summary.js';
import { policyItems } from './policy-transfer.js';
import { cutSlices } from './slices.js';

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
      before: await slicesOf(before, after, tables),
      after: await slicesOf(after, before, tables),
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

  #run(request: DiffRequest): Promise<ChangeSummary> {
    return new Promise((resolve, reject) => {
      const transferList = [...request.before, ...request.after].map(({ buffer }) => buffer as ArrayBuffer);
      const thread = new Worker(assetPath(THREAD), { name: 'diff', workerData: request, transferList });
      this.#thread = thread;
      // The comparison must not keep the process running.
      thread.unref();
      const late = setTimeout(() => {
        reject(new Error(`the comparison took longer than ${MAX_COMPARISON_MS / 1000} s`));
        void thread.terminate();
      }, MAX_COMPARISON_MS).unref();
      thread.once('message', resolve);
      thread.once('error', (error) => reject(threadError(error)));
      thread.once('exit', (code) => {
        clearTimeout(late);
        if (this.#thread === thread) this.#thread = undefined;
        reject(new Error(`the thread that compares policies exited (exit code ${code})`));
      });
    });
  }
}

/**
 * Returns the domains of one configuration that are not identical in the other, in slices, and yields to the event
 * loop. Tables of plans are appended to `tables`.
 */
async function slicesOf(
  { domains, version }: PolicySet,
  other: PolicySet,
  tables: PlanTable[],
): Promise<readonly Uint8Array[]> {
  const differing = new Map([...domains].filter(([domain, policy]) => other.domains.get(domain) !== policy));
  const slices: Uint8Array[] = [];
  const items = policyItems({ domains: differing, version }, undefined, { prepares: false, tables });
  for (const slice of cutSlices(items)) {
    slices.push(slice);
    await turn();
  }
  return slices;
}
