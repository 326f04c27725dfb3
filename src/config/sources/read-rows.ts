/** Thread of a RowsThread, which reads the rows of a hash in Redis for each message. */
import { parentPort, workerData } from 'node:worker_threads';
import { lowerThreadPriority } from '../threads/thread-message.js';
import type { RowsAnswer, RowsRequest, RowsUpdate } from './plan-sources.js';
import { RedisRows } from './redis-rows.js';

lowerThreadPriority();
const { address, passwordFile, known } = workerData as RowsRequest;
const rows = new RedisRows(address, passwordFile, undefined, known);
/** Only the end of the thread stops an update. */
const never = new AbortController().signal;

parentPort?.on('message', async ({ isOnlyServer }: RowsUpdate) => {
  const result = await rows.update(never, isOnlyServer);
  const bytes = result === 'changed' ? rows.bytes : undefined;
  parentPort?.postMessage({ result, known: rows.known, bytes } satisfies RowsAnswer);
});
