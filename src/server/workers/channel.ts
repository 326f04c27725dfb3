import type { FromWorker, ToWorker } from './messages.js';

/** One end of the channel between the primary process and a worker. */
type Channel = Pick<NodeJS.Process, 'connected' | 'send'>;

/** Sends a message. Resolves once the message is sent, or if the other process has exited. */
export function sendOver(channel: Channel, message: FromWorker | ToWorker): Promise<void> {
  return new Promise((resolve) => {
    if (channel.connected) channel.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}

/** Returns the monotonic time in microseconds, which is the same in all processes of the machine. */
export function machineMicros(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
