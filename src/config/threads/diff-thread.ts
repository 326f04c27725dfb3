/** Worker thread that PolicyDiffer starts for one comparison. */
import { parentPort, workerData } from 'node:worker_threads';
import type { PolicySet } from '../../policy/policy-set.js';
import { summarizeChanges } from '../diff/change-summary.js';
import type { DiffRequest } from './policy-differ.js';
import { type PolicyItem, PolicyReceiver } from './policy-transfer.js';
import { openSlice } from './slices.js';
import { lowerThreadPriority } from './thread-priority.js';

lowerThreadPriority();
const { before, after, tables, nowMicros } = workerData as DiffRequest;
parentPort?.postMessage(summarizeChanges(policiesOf(before), policiesOf(after), nowMicros));

function policiesOf(slices: readonly Uint8Array[]): PolicySet {
  const receiver = new PolicyReceiver(undefined, tables);
  for (const slice of slices) for (const item of openSlice<PolicyItem>(slice)) receiver.add(item);
  return receiver.finish('');
}
