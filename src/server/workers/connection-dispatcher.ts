import type { Worker } from 'node:cluster';
import { Socket, type SocketConstructorOpts } from 'node:net';
import { expectState } from '../../invariant.js';
import { type Heartbeat, LATE_AFTER_MS } from './heartbeat.js';

/** Handle with which Node.js accepts connections. `fd` is negative once the handle is closed. */
export interface ConnectionHandle {
  readonly fd: number;
  close(): void;
}

/** A worker that accepts connections. */
export interface Receiver {
  readonly heartbeat: Heartbeat;
  /**
   * Whether the worker's port is open, so that it can accept connections that node:cluster assigned to another worker.
   */
  readonly listens: boolean;
}

interface KnownWorker extends Receiver {
  send(...args: unknown[]): boolean;
  /** Connections that were sent to the worker and that it has not acknowledged. */
  readonly unacknowledged: Set<ConnectionHandle>;
}

/** A connection that was not sent to a worker yet. */
interface PendingConnection {
  /** Arguments with which node:cluster sends the connection. */
  readonly args: readonly unknown[];
  readonly handle: ConnectionHandle;
  /** Workers that got a ping for this connection. The first one that answers gets the connection. */
  readonly probed: Set<KnownWorker>;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Sends the connections that the primary process accepts (round-robin) to workers that answer. node:cluster assigns
 * them to workers in turn, even if a worker hangs. A connection in the channel of a hanging worker cannot be sent to
 * another worker, because both would use it once the first one continues. Each connection is therefore held until its
 * worker answers a ping. If the answer is late, the first other worker that answers gets it.
 *
 * Connections that a worker got just before it began to hang are closed, so that their clients reconnect.
 */
export class ConnectionDispatcher {
  readonly #workers = new Map<Receiver, KnownWorker>();
  readonly #pending = new Set<PendingConnection>();
  readonly #endConnection: (handle: ConnectionHandle) => void;
  #turn = 0;

  /**
   * @param end closes a connection for its client, even if another process has a copy; default: {@link endConnection}
   */
  constructor(end: (handle: ConnectionHandle) => void = endConnection) {
    this.#endConnection = end;
  }

  /** Adds a worker, until its process exits. */
  add(worker: Pick<Worker, 'process' | 'once'>, receiver: Receiver): void {
    const child = worker.process;
    const send = child.send.bind(child) as (...args: unknown[]) => boolean;
    const known: KnownWorker = {
      heartbeat: receiver.heartbeat,
      get listens() {
        return receiver.listens;
      },
      send,
      unacknowledged: new Set(),
    };
    this.#workers.set(receiver, known);
    child.send = (...args: unknown[]): boolean => {
      const [message, handle] = args;
      if (!isNewConnection(message)) return send(...args);
      const pending = {
        args,
        handle: handle as ConnectionHandle,
        probed: new Set<KnownWorker>(),
        timer: undefined,
      };
      this.#pending.add(pending);
      this.#probeNext(pending, known);
      return true;
    };
    worker.once('exit', () => this.#ended(receiver));
  }

  /** Sends the connections that wait for this worker to it. */
  workerAnswered(receiver: Receiver): void {
    const known = this.#workers.get(receiver);
    if (known === undefined) return;
    for (const pending of this.#pending) {
      if (!pending.probed.has(known)) continue;
      this.#removePending(pending);
      for (const one of known.unacknowledged) if (one.fd < 0) known.unacknowledged.delete(one);
      known.unacknowledged.add(pending.handle);
      known.send(...pending.args);
    }
  }

  /** Closes the connections that a silent worker has not acknowledged. */
  workerSilent(receiver: Receiver): void {
    for (const handle of this.#workers.get(receiver)?.unacknowledged ?? [])
      if (handle.fd >= 0) this.#endConnection(handle);
  }

  #ended(receiver: Receiver): void {
    for (const handle of this.#workers.get(receiver)?.unacknowledged ?? []) handle.close();
    this.#workers.delete(receiver);
    for (const pending of this.#pending) {
      if (this.#workers.size > 0) this.#probeNext(pending);
      else {
        // No worker is left.
        this.#removePending(pending);
        pending.handle.close();
      }
    }
  }

  #removePending(pending: PendingConnection): void {
    const wasHeld = this.#pending.delete(pending);
    expectState(wasHeld, 'a connection is assigned to a worker only once');
    clearTimeout(pending.timer);
  }

  /** Pings one more worker. The first of the pinged workers that answers gets the connection. */
  #probeNext(pending: PendingConnection, intended?: KnownWorker): void {
    clearTimeout(pending.timer);
    pending.timer = setTimeout(() => this.#probeNext(pending), LATE_AFTER_MS);
    const next = this.#nextWorker(pending, intended);
    if (next === undefined) return;
    pending.probed.add(next);
    next.heartbeat.ping();
  }

  /**
   * Returns the next worker to ping: `intended`, unless it is late, then another worker that is not late, then any
   * worker.
   */
  #nextWorker({ probed }: PendingConnection, intended: KnownWorker | undefined): KnownWorker | undefined {
    if (intended !== undefined && !intended.heartbeat.late) return intended;
    const all = [...this.#workers.values()];
    const turn = this.#turn++;
    const others = all
      .map((_, at) => all[(turn + at) % all.length] as KnownWorker)
      .filter((known) => !probed.has(known) && (known.listens || known === intended));
    return others.find(({ heartbeat }) => !heartbeat.late) ?? intended ?? others[0];
  }
}

/**
 * Returns whether this is node:cluster's message with a connection. Other messages contain listeners, which all workers
 * share.
 */
function isNewConnection(message: unknown): boolean {
  const { cmd, act } = message as { readonly cmd?: unknown; readonly act?: unknown };
  return cmd === 'NODE_CLUSTER' && act === 'newconn';
}

/** Shuts a connection down for its client. Closing the handle is not enough while a copy of it is in a channel. */
function endConnection(handle: ConnectionHandle): void {
  // Node.js's types do not contain this option.
  const options: SocketConstructorOpts & { handle: ConnectionHandle } = { handle, readable: false };
  const socket = new Socket(options);
  socket.on('error', () => {});
  socket.end();
}
