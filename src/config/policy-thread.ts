/* Runs in a thread of its own, which ThreadPolicyLoader starts for one load. */
import { parentPort, workerData } from 'node:worker_threads';
import { type LoadRequest, loadItems } from './load-transfer.js';
import { cutSlices } from './slices.js';

const slices = [...cutSlices(loadItems(workerData as LoadRequest))];
parentPort?.postMessage(
  slices,
  slices.map(({ buffer }) => buffer as ArrayBuffer),
);
