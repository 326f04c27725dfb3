import type { Worker } from 'node:cluster';

/** What Node.js accepts connections as; `fd` is negative once it was closed. */
interface ConnectionHandle {
  readonly fd: number;
  close(): void;
}

/**
 * Closes, when `worker` ends, the connections that the primary process has accepted for it (round-robin) and that it
 * never took. node:cluster closes its own copy of a connection when the worker says that it has it; a worker that is
 * killed, or hangs and is killed later, never does, and the caller would be connected to nobody for ever. Closed, it
 * connects again.
 */
export function closeLostConnections(worker: Worker): void {
  const child = worker.process;
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  const underWay = new Set<ConnectionHandle>();
  child.send = (...args: unknown[]): boolean => {
    const [message, handle] = args;
    if (isNewConnection(message)) {
      for (const one of underWay) if (one.fd < 0) underWay.delete(one);
      underWay.add(handle as ConnectionHandle);
    }
    return send(...args);
  };
  worker.once('exit', () => {
    for (const one of underWay) one.close();
    underWay.clear();
  });
}

/**
 * Whether this is node:cluster's own message with a connection; others come with listeners, which all workers share.
 */
function isNewConnection(message: unknown): boolean {
  const { cmd, act } = message as { readonly cmd?: unknown; readonly act?: unknown };
  return cmd === 'NODE_CLUSTER' && act === 'newconn';
}
