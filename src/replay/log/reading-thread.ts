/** The thread that reads a log. It sends the formats, receives the operators, and sends batches. */
import { once } from 'node:events';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Operator } from './format-string.js';
import { LogError, type LogOptions } from './logged-request.js';
import type { ThreadMessage } from './open-log.js';
import { LogFiles } from './read/files.js';

/** Batches that are sent before the receiver asks for more. */
const AHEAD = 4;

const port = parentPort as MessagePort;

function send(message: ThreadMessage): void {
  port.postMessage(message);
}

async function run(): Promise<void> {
  const files = await LogFiles.open(workerData as LogOptions);
  send({ formats: files.formats, members: files.members });
  const [operators] = (await once(port, 'message')) as [readonly Operator[]];
  let credit = AHEAD;
  let wake = (): void => {};
  port.on('message', () => {
    credit++;
    wake();
  });
  for await (const batch of files.read(operators)) {
    port.postMessage({ batch } satisfies ThreadMessage, [
      batch.times.buffer,
      batch.ends.buffer,
      batch.bytes.buffer,
    ]);
    credit--;
    while (credit <= 0) await new Promise<void>((resolve) => (wake = resolve));
  }
  send({ end: true });
}

run()
  .catch((error: unknown) => {
    if (!(error instanceof LogError)) throw error;
    send({ fault: error.message });
  })
  .finally(() => port.close());
