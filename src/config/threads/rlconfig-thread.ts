/** Worker thread that renderConfig starts for one text. */
import { parentPort, workerData } from 'node:worker_threads';
import { rlconfigText } from '../show/rlconfig-text.js';
import { type PolicyItem, PolicyReceiver } from './policy-transfer.js';
import type { ConfigRequest } from './render-config.js';
import { openSlice } from './slices.js';
import { lowerThreadPriority } from './thread-priority.js';

lowerThreadPriority();
const { form, version, slices, tables, ...shown } = workerData as ConfigRequest;
const receiver = new PolicyReceiver(undefined, tables);
for (const slice of slices) for (const item of openSlice<PolicyItem>(slice)) receiver.add(item);
const bytes = new TextEncoder().encode(rlconfigText(form, { ...shown, policySet: receiver.finish(version) }));
parentPort?.postMessage(bytes, [bytes.buffer]);
