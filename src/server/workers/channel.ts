import type { FromWorker, ToWorker } from './messages.js';

/** One side of what a primary process and a worker talk over. */
type Channel = Pick<NodeJS.Process, 'connected' | 'send'>;

/** Sends a message; resolves once it is on its way, or the other side gone. */
export function sendOver(channel: Channel, message: FromWorker | ToWorker): Promise<void> {
  return new Promise((resolve) => {
    if (channel.connected) channel.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}

/** A clock that all processes of the machine share and that never goes back, microseconds. */
export function machineMicros(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
