import { connect, type Socket } from 'node:net';
import { BackOff } from '../../runtime/timers.js';
import { withTimeout } from '../../runtime/turns.js';
import { CLOSE_MS, type Encoded, MAX_WAITING, type SinkTarget, StatsSink } from './stats-sink.js';

const CONNECT_MS = 10_000;
const INITIAL_BACK_OFF_MS = 100;
const MAX_BACK_OFF_MS = 5000;
/**
 * Milliseconds after which a connection counts as successful. A collector without capacity, or a load balancer, may
 * close a connection immediately.
 */
const STABLE_CONNECTION_MS = 1000;
/** Milliseconds after which a collector that does not read is disconnected. */
export const STALLED_MS = 30_000;
/**
 * Maximum characters that are joined and sent at once, plus one line. After an outage, joining all waiting lines would
 * take 20 ms.
 */
const BATCH_CHARACTERS = 128 * 1024;

/** Tags follow each name, as `name.__tag=value`. */
export interface StatsdTcpOptions extends SinkTarget {
  /** Maximum milliseconds for sending the last lines, and then for the end of the connection; default: CLOSE_MS. */
  readonly closeMs?: number;
}

/**
 * Sends statsd over TCP, one metric per line. Lines wait while the collector is unavailable, up to a bound. Then new
 * lines are dropped.
 */
export class StatsdTcp extends StatsSink {
  readonly name = 'statsd';
  readonly #options: StatsdTcpOptions;
  readonly #suffix: string;
  /** Lines that are not sent before the next flush, and their number of characters. */
  #lines: string[] = [];
  #characters = 0;
  /** Batches of lines that may be sent. */
  #batches: (readonly string[])[] = [];
  /** Number of batches that a flush has released. */
  #releasedBatches = 0;
  /** Whether a batch is being written. The next one follows when the system has accepted it. */
  #sending = false;
  /** Number of characters in `#lines`, in batches, and being written. */
  #waiting = 0;
  #socket: Socket | undefined;
  #connected = false;
  #hasFailed = false;
  readonly #backOff = new BackOff({ initialMs: INITIAL_BACK_OFF_MS, maxMs: MAX_BACK_OFF_MS });
  #retry: NodeJS.Timeout | undefined;
  /** Runs until a new connection counts as successful. */
  #stableTimer: NodeJS.Timeout | undefined;
  #closed = false;
  /** Set while closing. Called when everything is sent or cannot be sent. */
  #onIdle: (() => void) | undefined;

  constructor(options: StatsdTcpOptions) {
    super();
    this.#options = options;
    this.#suffix = options.tags.map(([name, value]) => `.__${name}=${value}`).join('');
    this.#connect();
  }

  protected override encode(name: string): Encoded {
    return { name: name + this.#suffix, tags: '' };
  }

  flush(): void {
    this.#endBatch();
    this.#releasedBatches = this.#batches.length;
    this.#send();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#stableTimer);
    const socket = this.#socket;
    if (socket === undefined) return;
    const { closeMs = CLOSE_MS } = this.#options;
    if (this.#waiting > 0) {
      const idle = new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
      this.flush();
      await withTimeout(closeMs, idle, () => {});
    }
    this.#onIdle = undefined;
    // A collector that has not accepted everything by now gets no more time.
    if (this.#connected && this.#waiting === 0) {
      const ended = new Promise<void>((resolve) => {
        socket.once('close', () => resolve());
        // destroy() would reset a half-closed connection with unread lines.
        socket.end(() => resolve());
      });
      await withTimeout(closeMs, ended, () => {});
    }
    socket.destroy();
  }

  protected override add(text: string): void {
    const line = `${text}\n`;
    if (this.#waiting + line.length > MAX_WAITING) {
      this.dropped++;
      return;
    }
    this.#lines.push(line);
    this.#waiting += line.length;
    this.#characters += line.length;
    if (this.#characters >= BATCH_CHARACTERS) this.#endBatch();
  }

  #endBatch(): void {
    if (this.#lines.length === 0) return;
    this.#batches.push(this.#lines);
    this.#lines = [];
    this.#characters = 0;
  }

  /** Sends the next batch, one at a time, because the socket would encode all waiting batches at once. */
  #send(): void {
    const socket = this.#socket;
    if (!this.#connected || socket?.writable !== true) return;
    if (this.#sending || this.#releasedBatches === 0) return;
    const batch = this.#batches.shift() as readonly string[];
    this.#releasedBatches--;
    this.#sending = true;
    const text = batch.join('');
    // The socket's own timeout would restart with each byte that the collector sends.
    const stalled = setTimeout(
      () => socket.destroy(new Error('the statsd server does not read the metrics')),
      STALLED_MS,
    ).unref();
    socket.write(text, (error) => {
      clearTimeout(stalled);
      this.#waiting -= text.length;
      if (error) this.dropped += batch.length;
      if (this.#waiting === 0) this.#onIdle?.();
      if (this.#socket !== socket) return;
      this.#sending = false;
      // The callback runs before the next turn of the event loop if the system accepts the batch immediately.
      setImmediate(() => this.#send());
    });
  }

  #connect(): void {
    const { host, port, log } = this.#options;
    const socket = connect({ host, port, timeout: CONNECT_MS });
    this.#socket = socket;
    socket.unref();
    let reason = 'the connection was closed';
    socket.once('connect', () => {
      this.#connected = true;
      socket.setTimeout(0);
      this.#stableTimer = setTimeout(() => {
        if (this.#hasFailed) log('info', `${this.#description()} accepts metrics again`);
        this.#hasFailed = false;
        this.#backOff.reset();
      }, STABLE_CONNECTION_MS).unref();
      this.flush();
    });
    socket.on('timeout', () => {
      reason = 'no answer';
      socket.destroy();
    });
    socket.on('error', (error) => {
      reason = error.message;
    });
    // Reading is necessary to notice the end of the connection.
    socket.resume();
    socket.once('close', () => this.#onLost(reason));
  }

  #onLost(reason: string): void {
    clearTimeout(this.#stableTimer);
    this.#connected = false;
    this.#sending = false;
    this.#socket = undefined;
    this.#onIdle?.();
    if (this.#closed) return;
    if (!this.#hasFailed) {
      this.#options.log(
        'warn',
        `${this.#description()} does not accept metrics, and weir keeps retrying: ${reason}`,
      );
    }
    this.#hasFailed = true;
    this.#retry = setTimeout(() => this.#connect(), this.#backOff.next()).unref();
  }

  #description(): string {
    return `statsd at ${this.#options.host}:${this.#options.port} (STATSD_HOST, STATSD_PORT)`;
  }
}
