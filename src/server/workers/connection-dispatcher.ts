import type { Worker } from 'node:cluster';
import { Socket, type SocketConstructorOpts } from 'node:net';
import { expectState } from '../../invariant.js';
import { type Heartbeat, LATE_AFTER_MS } from './heartbeat.js';

/** What Node.js accepts connections as; `fd` is negative once it was closed. */
export interface ConnectionHandle {
  readonly fd: number;
  close(): void;
}

/** A worker that connections may go to. */
export interface Receiver {
  readonly heartbeat: Heartbeat;
  /** Whether its port is open, so that it can take what node:cluster meant for another. */
  readonly listens: boolean;
}

interface KnownWorker extends Receiver {
  send(...args: unknown[]): boolean;
  /** What it was given and has not said that it has. */
  readonly unacknowledged: Set<ConnectionHandle>;
}

/** A connection that no worker was given yet. */
interface PendingConnection {
  /** What node:cluster sends with the connection. */
  readonly args: readonly unknown[];
  readonly handle: ConnectionHandle;
  /** Those who get it if they answer. */
  readonly probed: Set<KnownWorker>;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Hands connections that the primary process accepted (round-robin) to workers that are there. node:cluster gives them
 * to workers in turn, whether these live or hang; and a connection that lies in the channel of a worker that hangs can
 * be given to nobody else, because it would have the same connection when it goes on. So each connection is held until
 * the worker whose turn it is has answered; when that takes long, the first other one that answers gets it.
 *
 * What a worker was given just before it began to hang is closed, so that the caller connects again.
 */
export class ConnectionDispatcher {
  readonly #workers = new Map<Receiver, KnownWorker>();
  readonly #pending = new Set<PendingConnection>();
  readonly #endConnection: (handle: ConnectionHandle) => void;
  #turn = 0;

  /** `end` tells the caller of a connection that it is over, whoever else has it; {@link endConnection} when absent. */
  constructor(end: (handle: ConnectionHandle) => void = endConnection) {
    this.#endConnection = end;
  }

  /** From now on connections go to this worker, too; forgets it when its process ends. */
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

  /** The worker has answered: it gets what waited for that. */
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

  /** The worker is silent: what it was given and never took is closed. */
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
        // Nobody is left to take it.
        this.#removePending(pending);
        pending.handle.close();
      }
    }
  }

  #removePending(pending: PendingConnection): void {
    const wasHeld = this.#pending.delete(pending);
    expectState(wasHeld, 'a connection is given away once');
    clearTimeout(pending.timer);
  }

  /** Asks one worker more whether it is there; the first of those who were asked gets the connection. */
  #probeNext(pending: PendingConnection, intended?: KnownWorker): void {
    clearTimeout(pending.timer);
    pending.timer = setTimeout(() => this.#probeNext(pending), LATE_AFTER_MS);
    const next = this.#nextWorker(pending, intended);
    if (next === undefined) return;
    pending.probed.add(next);
    next.heartbeat.ping();
  }

  /** The worker whose turn it is, `intended`, unless it is late: then another; the late ones when there is no other. */
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
 * Whether this is node:cluster's own message with a connection; others come with listeners, which all workers share.
 */
function isNewConnection(message: unknown): boolean {
  const { cmd, act } = message as { readonly cmd?: unknown; readonly act?: unknown };
  return cmd === 'NODE_CLUSTER' && act === 'newconn';
}

/** Ends a connection for its caller; closing this process's copy would not, while another one lies in a channel. */
function endConnection(handle: ConnectionHandle): void {
  // The types of Node.js do not know this option.
  const options: SocketConstructorOpts & { handle: ConnectionHandle } = { handle, readable: false };
  const socket = new Socket(options);
  socket.on('error', () => {});
  socket.end();
}
