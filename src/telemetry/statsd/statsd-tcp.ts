import { connect, type Socket } from 'node:net';
import { BackOff } from '../../runtime/back-off.js';
import { withTimeout } from '../../runtime/turns.js';
import { CLOSE_MS, MAX_WAITING, millisText, rateText, type SinkLog, type StatsSink } from './stats-sink.js';

const CONNECT_MS = 10_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
/**
 * A connection that lasts so long is a good one: others, that a collector without room or a balancer closes at once,
 * count as failed.
 */
const GOOD_MS = 1000;
/** A collector that has not taken a piece after so long is left and called again. */
export const STALLED_MS = 30_000;
/** A collector has nothing to say. One that says so many bytes is left: reading it would have no end. */
export const MAX_HEARD = 64 * 1024;

/**
 * So many characters, or a line more, are put together and sent at once: after an absence of the collector as many as
 * may wait would take 20 ms.
 */
const PIECE_CHARACTERS = 128 * 1024;

export interface StatsdTcpOptions {
  readonly host: string;
  readonly port: number;
  /** Stand behind every name, as `name.__tag=value`. */
  readonly tags: readonly (readonly [string, string])[];
  readonly log: SinkLog;
}

/**
 * Sends statsd over TCP, a metric a line. Lines wait while the collector is away, up to a bound; past it new ones are
 * dropped.
 */
export class StatsdTcp implements StatsSink {
  readonly name = 'statsd';
  dropped = 0;
  readonly #options: StatsdTcpOptions;
  readonly #suffix: string;
  /** Not to be sent before the next flush, and how many characters they have. */
  #lines: string[] = [];
  #characters = 0;
  /** Lines that may be sent, a piece after the other. */
  #pieces: (readonly string[])[] = [];
  /** How many of `#pieces` a flush has released. */
  #released = 0;
  /** A piece is on its way: the next one goes when the system has taken it. */
  #sending = false;
  /** Characters in `#lines`, in `#pieces` and on their way. */
  #waiting = 0;
  #socket: Socket | undefined;
  #connected = false;
  #hasFailed = false;
  readonly #backOff = new BackOff({ initialMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS });
  #retry: NodeJS.Timeout | undefined;
  /** Runs while a connection is not known to be good. */
  #trial: NodeJS.Timeout | undefined;
  #closed = false;
  /** Set while closing: called when everything is sent, or cannot be. */
  #onIdle: (() => void) | undefined;

  constructor(options: StatsdTcpOptions) {
    this.#options = options;
    this.#suffix = options.tags.map(([name, value]) => `.__${name}=${value}`).join('');
    this.#connect();
  }

  counter(name: string, delta: number): void {
    this.#add(`${name}${this.#suffix}:${delta}|c\n`);
  }

  gauge(name: string, value: number): void {
    this.#add(`${name}${this.#suffix}:${value}|g\n`);
  }

  timer(name: string, millis: number, rate: number): void {
    this.#add(`${name}${this.#suffix}:${millisText(millis)}|ms${rateText(rate)}\n`);
  }

  flush(): void {
    this.#endPiece();
    this.#released = this.#pieces.length;
    this.#send();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#trial);
    const socket = this.#socket;
    if (socket === undefined) return;
    if (this.#waiting > 0) {
      const idle = new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
      this.flush();
      await withTimeout(CLOSE_MS, idle, () => {});
    }
    this.#onIdle = undefined;
    // One that has not taken it all by now is not waited for any longer.
    if (this.#connected && this.#waiting === 0) {
      const ended = new Promise<void>((resolve) => {
        socket.once('close', () => resolve());
        // A half-closed connection with lines unread would be reset by destroy().
        socket.end(() => resolve());
      });
      await withTimeout(CLOSE_MS, ended, () => {});
    }
    socket.destroy();
  }

  #add(line: string): void {
    if (this.#waiting + line.length > MAX_WAITING) {
      this.dropped++;
      return;
    }
    this.#lines.push(line);
    this.#waiting += line.length;
    this.#characters += line.length;
    if (this.#characters >= PIECE_CHARACTERS) this.#endPiece();
  }

  #endPiece(): void {
    if (this.#lines.length === 0) return;
    this.#pieces.push(this.#lines);
    this.#lines = [];
    this.#characters = 0;
  }

  /** Sends the next piece. One at a time: those that wait in the socket would be encoded all at once. */
  #send(): void {
    const socket = this.#socket;
    if (!this.#connected || socket?.writable !== true) return;
    if (this.#sending || this.#released === 0) return;
    const piece = this.#pieces.shift() as readonly string[];
    this.#released--;
    this.#sending = true;
    const text = piece.join('');
    // The timeout of the socket would begin anew with each byte that the collector sends.
    const stalled = setTimeout(() => socket.destroy(new Error('it takes nothing')), STALLED_MS).unref();
    socket.write(text, (error) => {
      clearTimeout(stalled);
      this.#waiting -= text.length;
      if (error) this.dropped += piece.length;
      if (this.#waiting === 0) this.#onIdle?.();
      if (this.#socket !== socket) return;
      this.#sending = false;
      // What the system takes at once is told before the event loop turns.
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
      this.#trial = setTimeout(() => {
        if (this.#hasFailed) log('info', `${this.#where()} takes metrics again`);
        this.#hasFailed = false;
        this.#backOff.reset();
      }, GOOD_MS).unref();
      this.flush();
    });
    socket.on('timeout', () => {
      reason = 'no answer';
      socket.destroy();
    });
    socket.on('error', (error) => {
      reason = error.message;
    });
    // What a collector says is nobody's business, but its end must be seen.
    socket.on('data', () => {
      if (socket.bytesRead > MAX_HEARD) socket.destroy(new Error('it sends more than a collector says'));
    });
    socket.once('close', () => this.#onLost(reason));
  }

  #onLost(reason: string): void {
    clearTimeout(this.#trial);
    this.#connected = false;
    this.#sending = false;
    this.#socket = undefined;
    this.#onIdle?.();
    if (this.#closed) return;
    if (!this.#hasFailed) {
      this.#options.log('warn', `${this.#where()} takes no metrics, trying again: ${reason}`);
    }
    this.#hasFailed = true;
    this.#retry = setTimeout(() => this.#connect(), this.#backOff.next()).unref();
  }

  #where(): string {
    return `statsd at ${this.#options.host}:${this.#options.port} (STATSD_HOST, STATSD_PORT)`;
  }
}
