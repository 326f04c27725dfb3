import type { Worker } from 'node:cluster';
import { Socket, type SocketConstructorOpts } from 'node:net';
import { expectState } from '../../invariant.js';
import { LATE_MS, type Pulse } from './heartbeat.js';

/** What Node.js accepts connections as; `fd` is negative once it was closed. */
export interface ConnectionHandle {
  readonly fd: number;
  close(): void;
}

/** A worker that connections may go to. */
export interface Receiver {
  readonly pulse: Pulse;
  /** Whether its port is open, so that it can take what node:cluster meant for another. */
  readonly listens: boolean;
}

interface Known extends Receiver {
  send(...args: unknown[]): boolean;
  /** What it was given and has not said that it has. */
  readonly given: Set<ConnectionHandle>;
}

/** A connection that no worker was given yet. */
interface Held {
  /** What node:cluster sends with the connection. */
  readonly args: readonly unknown[];
  readonly handle: ConnectionHandle;
  /** Those who get it if they answer. */
  readonly offered: Set<Known>;
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
export class HandedConnections {
  readonly #known = new Map<Receiver, Known>();
  readonly #held = new Set<Held>();
  readonly #end: (handle: ConnectionHandle) => void;
  #turn = 0;

  /** `end` tells the caller of a connection that it is over, whoever else has it; {@link endConnection} when absent. */
  constructor(end: (handle: ConnectionHandle) => void = endConnection) {
    this.#end = end;
  }

  /** From now on connections go to this worker, too; forgets it when its process ends. */
  add(worker: Pick<Worker, 'process' | 'once'>, receiver: Receiver): void {
    const child = worker.process;
    const send = child.send.bind(child) as (...args: unknown[]) => boolean;
    const known: Known = {
      pulse: receiver.pulse,
      get listens() {
        return receiver.listens;
      },
      send,
      given: new Set(),
    };
    this.#known.set(receiver, known);
    child.send = (...args: unknown[]): boolean => {
      const [message, handle] = args;
      if (!isNewConnection(message)) return send(...args);
      const held = {
        args,
        handle: handle as ConnectionHandle,
        offered: new Set<Known>(),
        timer: undefined,
      };
      this.#held.add(held);
      this.#offer(held, known);
      return true;
    };
    worker.once('exit', () => this.#ended(receiver));
  }

  /** The worker has answered: it gets what waited for that. */
  answered(receiver: Receiver): void {
    const known = this.#known.get(receiver);
    if (known === undefined) return;
    for (const held of this.#held) {
      if (!held.offered.has(known)) continue;
      this.#release(held);
      for (const one of known.given) if (one.fd < 0) known.given.delete(one);
      known.given.add(held.handle);
      known.send(...held.args);
    }
  }

  /** The worker is silent: what it was given and never took is closed. */
  silent(receiver: Receiver): void {
    for (const handle of this.#known.get(receiver)?.given ?? []) if (handle.fd >= 0) this.#end(handle);
  }

  #ended(receiver: Receiver): void {
    for (const handle of this.#known.get(receiver)?.given ?? []) handle.close();
    this.#known.delete(receiver);
    for (const held of this.#held) {
      if (this.#known.size > 0) this.#offer(held);
      else {
        // Nobody is left to take it.
        this.#release(held);
        held.handle.close();
      }
    }
  }

  #release(held: Held): void {
    const wasHeld = this.#held.delete(held);
    expectState(wasHeld, 'a connection is given away once');
    clearTimeout(held.timer);
  }

  /** Asks one worker more whether it is there; the first of those who were asked gets the connection. */
  #offer(held: Held, intended?: Known): void {
    clearTimeout(held.timer);
    held.timer = setTimeout(() => this.#offer(held), LATE_MS);
    const next = this.#next(held, intended);
    if (next === undefined) return;
    held.offered.add(next);
    next.pulse.ask();
  }

  /** The worker whose turn it is, `intended`, unless it is late: then another; the late ones when there is no other. */
  #next({ offered }: Held, intended: Known | undefined): Known | undefined {
    if (intended !== undefined && !intended.pulse.late) return intended;
    const all = [...this.#known.values()];
    const turn = this.#turn++;
    const others = all
      .map((_, at) => all[(turn + at) % all.length] as Known)
      .filter((known) => !offered.has(known) && (known.listens || known === intended));
    return others.find(({ pulse }) => !pulse.late) ?? intended ?? others[0];
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
