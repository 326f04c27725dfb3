import { parentPort } from 'node:worker_threads';
import type { PolicySet } from '../../policy/compiled-policy.js';
import { runToCompletion, turn, withTimeout } from '../../runtime/turns.js';
import type { ChangeSummary } from '../diff/render-diff.js';
import { type ConfigForm, rlconfigText, type ShownConfig } from '../show/dump.js';
import { buildBatches, inBatches, type PolicyItem, policyItems } from './policy-transfer.js';
import { messageOf, startThread, type ThreadTask } from './thread.js';

/** Input of the thread. */
export interface TaskData<Data> {
  readonly data: Data;
  /** Number of policy sets that follow. */
  readonly sets: number;
}

/** A part of a policy set, or the version of the set, which follows its parts. */
type TaskMessage = readonly PolicyItem[] | string;

/**
 * Runs a task in a thread, which calls {@link receivePolicies}, and resolves with its result. Policies are sent batch
 * by batch, so that this thread decides requests meanwhile. The thread does not keep the process running, and ends if
 * `signal` aborts. Rejects if the thread does not end its work.
 */
async function policyTask<Data, Result>(
  task: ThreadTask,
  data: Data,
  policySets: readonly PolicySet[],
  signal?: AbortSignal,
): Promise<Result> {
  const input: TaskData<Data> = { data, sets: policySets.length };
  const thread = startThread(task, input);
  thread.unref();
  signal?.addEventListener('abort', () => void thread.terminate());
  const result = messageOf<Result>(thread, task);
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

/** Receives a number of policy sets in the thread, and sends what `run` returns for them. */
export function receivePolicies(sets: number, run: (policySets: readonly PolicySet[]) => unknown): void {
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
    parentPort?.postMessage(run(received));
    parentPort?.close();
  });
}

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
    const changes = policyTask<number, ChangeSummary>('compares policies', nowMicros, sets, signal);
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

/** Input of the thread. */
export interface ConfigRequest extends Omit<ShownConfig, 'policySet'> {
  readonly form: ConfigForm;
}

/** Maximum number of rules, and of rules of `derive`, that are rendered in this thread, which takes about 5 ms. */
export const MAX_RULES_AT_ONCE = 1000;

/** The text of `/rlconfig`. A thread renders large policies. */
export async function renderConfig(form: ConfigForm, shown: ShownConfig): Promise<string | Buffer> {
  const { policySet, ...rest } = shown;
  if (policySet === undefined || rulesOf(policySet) <= MAX_RULES_AT_ONCE) return rlconfigText(form, shown);
  const request: ConfigRequest = { ...rest, form };
  const bytes = await policyTask<ConfigRequest, Uint8Array<ArrayBuffer>>('renders policies', request, [
    policySet,
  ]);
  return Buffer.from(bytes.buffer);
}

function rulesOf({ domains }: PolicySet): number {
  let count = 0;
  for (const { rules, steps } of domains.values()) {
    count += rules.length;
    for (const step of steps) if (step.kind === 'rules') count += step.rules.length;
  }
  return count;
}
