import { parentPort, Worker, workerData } from 'node:worker_threads';
import { assetPath } from '../../assets.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { runToCompletion, turn } from '../../runtime/turns.js';
import { buildBatches, inBatches, type PolicyItem, policyItems } from './policy-transfer.js';
import { messageOf } from './thread-message.js';
import { lowerThreadPriority } from './thread-priority.js';

/** Input of the thread. */
interface TaskData<Data> {
  readonly data: Data;
  /** Number of policy sets that follow. */
  readonly sets: number;
}

/** A part of a policy set, or the version of the set, which follows its parts. */
type TaskMessage = readonly PolicyItem[] | string;

/**
 * Runs a script that calls {@link runTask} in a thread, and resolves with its result. Policies are sent batch by batch,
 * so that this thread decides requests meanwhile. The thread does not keep the process running, and ends if `signal`
 * aborts. `does` completes the sentence "the thread that …". Rejects if the thread does not end its work.
 */
export async function policyTask<Data, Result>(
  script: string,
  does: string,
  data: Data,
  policySets: readonly PolicySet[],
  signal?: AbortSignal,
): Promise<Result> {
  const input: TaskData<Data> = { data, sets: policySets.length };
  const thread = new Worker(assetPath(script), { name: 'policy task', workerData: input });
  thread.unref();
  signal?.addEventListener('abort', () => void thread.terminate());
  const result = messageOf<Result>(thread, does);
  // The thread may fail while policies are being sent, when nothing waits for the result yet.
  result.catch(() => {});
  const send = (message: TaskMessage): void => thread.postMessage(message);
  for (const set of policySets) {
    for (const batch of inBatches(policyItems(set))) {
      send(batch);
      await turn();
    }
    send(set.version);
  }
  return result;
}

/** Receives policies, and sends what `run` returns for them. Runs in the thread, with a low priority. */
export function runTask<Data>(run: (data: Data, policySets: readonly PolicySet[]) => unknown): void {
  lowerThreadPriority();
  const { data, sets } = workerData as TaskData<Data>;
  const received: PolicySet[] = [];
  let batches: (readonly PolicyItem[])[] = [];
  parentPort?.on('message', (message: TaskMessage) => {
    if (typeof message !== 'string') {
      batches.push(message);
      return;
    }
    received.push({ domains: runToCompletion(buildBatches(batches)), version: message });
    batches = [];
    if (received.length < sets) return;
    parentPort?.postMessage(run(data, received));
    parentPort?.close();
  });
}
