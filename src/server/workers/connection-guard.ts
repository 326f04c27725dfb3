import type { ChildProcess } from 'node:child_process';
import type { Heartbeat } from './worker-watchdog.js';

/** Milliseconds after which a connection that waits for a worker goes to another one. */
export const LATE_AFTER_MS = 100;

/** Handle with which Node.js accepts connections. `fd` is negative once the handle is closed. */
export interface ConnectionHandle {
  readonly fd: number;
  close(): void;
}

/** Message with which node:cluster sends a connection that a listener (`key`) has accepted. */
interface NewConnection {
  readonly cmd: 'NODE_CLUSTER';
  readonly act: 'newconn';
  readonly key: string;
  readonly seq: number;
}

/** A connection that was not sent to its worker yet. */
interface WaitingConnection {
  readonly message: NewConnection;
  send(): void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Keeps connections away from a worker that hangs. The round-robin of node:cluster gives each worker one connection at
 * a time, and the next one when the worker has accepted it. A connection in the channel of a worker that hangs can
 * neither be accepted nor be taken back. Each connection therefore waits until its worker answers a ping. If the answer
 * is late, the guard declines the connection as a worker that shuts down does, and node:cluster chooses the next
 * worker.
 */
export class ConnectionGuard {
  readonly #child: Pick<ChildProcess, 'send' | 'emit'>;
  readonly #waiting = new Set<WaitingConnection>();
  /** The last connection that the worker got from each listener. */
  readonly #sent = new Map<string, ConnectionHandle>();

  constructor(child: Pick<ChildProcess, 'send' | 'emit'>, heartbeat: Pick<Heartbeat, 'ping'>) {
    this.#child = child;
    const send = child.send.bind(child) as (...args: unknown[]) => boolean;
    child.send = (...args: unknown[]): boolean => {
      const [message, handle] = args;
      if (!isNewConnection(message)) return send(...args);
      const waiting = {
        message,
        send: () => {
          this.#sent.set(message.key, handle as ConnectionHandle);
          send(...args);
        },
        timer: setTimeout(() => this.#decline(waiting), LATE_AFTER_MS),
      };
      this.#waiting.add(waiting);
      heartbeat.ping();
      return true;
    };
  }

  /** Sends the connections that wait to the worker, which has answered a ping. */
  answered(): void {
    for (const waiting of [...this.#waiting]) {
      this.#remove(waiting);
      waiting.send();
    }
  }

  /**
   * Passes the waiting connections of a worker that has disconnected to other workers, and closes a connection that it
   * never accepted.
   */
  ended(): void {
    for (const waiting of [...this.#waiting]) this.#decline(waiting);
    for (const handle of this.#sent.values()) if (handle.fd >= 0) handle.close();
  }

  #decline(waiting: WaitingConnection): void {
    this.#remove(waiting);
    const { seq } = waiting.message;
    this.#child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false });
  }

  #remove(waiting: WaitingConnection): void {
    clearTimeout(waiting.timer);
    this.#waiting.delete(waiting);
  }
}

/** Returns whether a message contains a connection. Others contain listeners, or are weir's own. */
function isNewConnection(message: unknown): message is NewConnection {
  const { cmd, act } = message as Partial<NewConnection>;
  return cmd === 'NODE_CLUSTER' && act === 'newconn';
}
