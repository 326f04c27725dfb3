import type { ChildProcess } from 'node:child_process';

/** Milliseconds between two pings. */
export const HEARTBEAT_INTERVAL_MS = 500;
/** Milliseconds without a message after which a worker is silent. */
export const SILENT_AFTER_MS = 1500;
/** Milliseconds of silence after which a worker is replaced. */
export const REPLACE_AFTER_MS = 5000;
/** The same during the start, when a worker receives all policies: 300,000 rules took 4 s of a core. */
export const REPLACE_STARTING_AFTER_MS = 300_000;

/**
 * Tracks whether a worker answers. Silence is measured in ticks of the primary process, which reads the messages of
 * workers between two ticks. A pause of the primary process therefore does not count as silence of its workers.
 */
export class Heartbeat {
  readonly #send: () => void;
  #isPinged = false;
  #ticks = 0;

  /** `send` sends a ping. Its answer is passed to {@link onMessage}. */
  constructor(send: () => void) {
    this.#send = send;
  }

  /** Milliseconds, in whole ticks, since the last message. */
  get silentMs(): number {
    return this.#ticks * HEARTBEAT_INTERVAL_MS;
  }

  get silent(): boolean {
    return this.silentMs >= SILENT_AFTER_MS;
  }

  /** Whether the worker must be replaced. `listens`: its ports are open. */
  isLost(listens: boolean): boolean {
    return this.silentMs >= (listens ? REPLACE_AFTER_MS : REPLACE_STARTING_AFTER_MS);
  }

  /** Sends a ping unless one is pending, so that the channel of a worker that hangs contains at most one. */
  ping(): void {
    if (this.#isPinged) return;
    this.#isPinged = true;
    this.#send();
  }

  /** Notes a message of the worker. `answer`: the message answers the ping. */
  onMessage(answer: boolean): void {
    this.#ticks = 0;
    if (answer) this.#isPinged = false;
  }

  /** To be called every {@link HEARTBEAT_INTERVAL_MS}. */
  tick(): void {
    if (this.#isPinged) this.#ticks++;
    else this.ping();
  }
}

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
