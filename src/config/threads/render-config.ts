import { Worker } from 'node:worker_threads';
import { assetPath } from '../../assets.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { type ConfigForm, rlconfigText, type ShownConfig } from '../show/rlconfig-text.js';
import { slicesOf } from './policy-differ.js';
import { messageOf } from './thread-message.js';

/** Input of the thread. */
export interface ConfigRequest extends Omit<ShownConfig, 'policySet'> {
  readonly form: ConfigForm;
  readonly version: string;
  readonly slices: readonly Uint8Array[];
  readonly tables: readonly PlanTable[];
}

const THREAD = 'src/config/threads/rlconfig-thread.js';
/** Maximum number of rules, and of rules of `derive`, that are rendered in this thread, which takes about 5 ms. */
export const MAX_RULES_AT_ONCE = 1000;

/** Returns the text of `/rlconfig`. A thread renders large policies, which are sent to it slice by slice. */
export async function renderConfig(form: ConfigForm, shown: ShownConfig): Promise<string | Buffer> {
  const { policySet, ...rest } = shown;
  if (policySet === undefined || rulesOf(policySet) <= MAX_RULES_AT_ONCE) return rlconfigText(form, shown);
  const tables: PlanTable[] = [];
  const slices = await slicesOf(policySet, tables);
  const request: ConfigRequest = { ...rest, form, version: policySet.version, slices, tables };
  const transferList = slices.map(({ buffer }) => buffer as ArrayBuffer);
  const thread = new Worker(assetPath(THREAD), { name: 'rlconfig', workerData: request, transferList });
  // A text must not keep the process running.
  thread.unref();
  const { buffer } = await messageOf<Uint8Array<ArrayBuffer>>(thread, 'renders policies');
  return Buffer.from(buffer);
}

function rulesOf({ domains }: PolicySet): number {
  let count = 0;
  for (const { rules, steps } of domains.values()) {
    count += rules.length;
    for (const step of steps) if (step.kind === 'rules') count += step.rules.length;
  }
  return count;
}
