import { createSecureContext, type SecureContext } from 'node:tls';
import type { RedisOptions } from 'ioredis';
import { BackOff } from '../../../back-off.js';
import { CircuitBreaker } from './circuit-breaker.js';
import {
  type ConnectionCounts,
  DEFAULT_RETRY,
  type RedisConnectionEvents,
  type RedisConnectionOptions,
  type SendCommand,
} from './connection-options.js';
import { guardHandshake } from './handshake-guard.js';
import { Outage } from './outage.js';
import { LoginRedis, type RedisLogin } from './redis-login.js';
import { INFO_TEXT, type ReplyBound, SHORT_TEXT } from './reply-bound.js';
import { RespPipe } from './resp-pipe.js';
import { serverAdvice } from './server-advice.js';

const FIRST_PROBE_MS = 100;
/** A handshake and a probe may each take as long as a decision may (REDIS_TIMEOUT), but at least this long. */
const LEAST_CONNECT_TIMEOUT_MS = 1000;
const LEAST_PROBE_TIMEOUT_MS = 500;
/** Probes without an answer after which the connection counts as hung and is made anew. */
const HUNG_AFTER_PROBES = 2;
/**
 * Only after being up for this long is an outage a new one: before, the pauses between probes go on growing and its
 * reasons are not logged again.
 */
const STABLE_MS = 5000;
/** Different reasons logged while Redis stays away. */
const MAX_REASONS = 10;

/**
 * One connection to one Redis that keeps itself up: connects in the background, probes, reconnects for ever. It is up
 * once a probe (what calls do, a write included, so that a replica, a full Redis or missing rights do not pass)
 * succeeded, and down when the connection is lost or the circuit breaker opens; an open breaker is closed by a probe.
 * Nothing is queued and nothing is sent twice.
 *
 * ioredis finds Redis, connects, logs in and connects again; once it is ready, commands and replies go over its socket
 * through a {@link RespPipe}.
 */
export class RedisConnection {
  private readonly options: RedisConnectionOptions;
  private readonly events: RedisConnectionEvents;
  private readonly client: LoginRedis;
  private readonly breaker: CircuitBreaker;
  private readonly tlsContext: SecureContext | undefined;
  private readonly outage: Outage;
  private pipe: RespPipe | undefined;
  private readonly loggedReasons = new Set<string>();
  /** The login of the latest connection. */
  private login: RedisLogin;
  private lastError = '';
  private everUp = false;
  private isUp = false;
  private upSince = 0;
  /** Whether the next `up` is worth a line; so is the first. */
  private loggedDown = true;
  private advised = false;
  private closed = false;
  /** Pauses before attempts to connect until Redis was reached for the first time, and later. */
  private readonly startupPauses: BackOff;
  private readonly pauses = new BackOff(DEFAULT_RETRY);
  /** Counts connections, so that answers of an earlier one are known as such. */
  private epoch = 0;
  /** Connections that were made, login included. */
  private openedCount = 0;
  private connected = false;
  private readonly probePauses = new BackOff({ ...DEFAULT_RETRY, firstMs: FIRST_PROBE_MS });
  private unansweredProbes = 0;
  private probeTimer: NodeJS.Timeout | undefined;
  private handshakeTimer: NodeJS.Timeout | undefined;

  /** Starts connecting. Throws an Error when the TLS settings cannot be used. */
  constructor(options: RedisConnectionOptions, events: RedisConnectionEvents) {
    this.options = options;
    this.events = events;
    this.startupPauses = new BackOff(options.startup ?? DEFAULT_RETRY);
    this.breaker = new CircuitBreaker(options.breakerFailures);
    const { address } = options;
    this.login = address;
    this.outage = new Outage(address, options.names);
    // ioredis gives up for ever when a TLS socket cannot be made: better to hear of it at start. Reading a hundred
    // certificates takes milliseconds, so it is done once.
    this.tlsContext = address.tls ? createSecureContext({ ...options.tls }) : undefined;
    this.client = new LoginRedis(this.clientOptions(), () => this.currentLogin());
    this.client.on('error', (error: Error) => {
      this.lastError = error.message;
    });
    this.client.on('connect', () => this.watchHandshake());
    this.client.on('ready', () => this.onReady());
    this.client.on('close', () => this.onClose());
    this.client.connect().catch(ignore);
  }

  /** Whether calls may be made. */
  get up(): boolean {
    return this.isUp;
  }

  /** Why calls may not be made now. */
  get downReason(): 'breaker_open' | 'disconnected' {
    return this.breaker.open ? 'breaker_open' : 'disconnected';
  }

  /** Connections since start, logged in; at most one is open. */
  get connections(): ConnectionCounts {
    const active = this.connected ? 1 : 0;
    return { active, opened: this.openedCount, closed: this.openedCount - active };
  }

  /** Sends one command; see {@link SendCommand}. */
  send(name: string, args: string[], bound: ReplyBound): Promise<unknown> {
    return this.pipe?.send(name, args, bound) ?? Promise.reject(new Error('there is no connection'));
  }

  /** A call was answered. */
  noteSuccess(): void {
    this.breaker.success();
  }

  /** A call failed. A run of them opens the breaker. */
  noteFailure(message: string): void {
    if (!this.isUp || !this.breaker.failure()) return;
    this.goDown(`${this.options.breakerFailures} calls in a row failed (${message})`);
    this.unansweredProbes = 0;
    this.probeLater();
  }

  /** Nothing was answered for a while, although something was asked. Opens the breaker. */
  noteSilence(micros: number): void {
    if (!this.isUp || !this.breaker.trip()) return;
    this.goDown(`no answer for ${Math.round(micros / 1000)} ms`);
    this.unansweredProbes = 0;
    this.probe();
  }

  /** Ends the connection for good. */
  close(): void {
    this.closed = true;
    this.isUp = false;
    this.epoch++;
    this.stopTimers();
    this.client.disconnect();
    this.client.stream?.destroy();
  }

  private clientOptions(): RedisOptions & { replyMapping: 'legacy' } {
    const { address, tls } = this.options;
    return {
      ...(address.path === undefined
        ? { host: address.host as string, port: address.port as number }
        : { path: address.path }),
      ...(this.tlsContext === undefined ? {} : { tls: { ...tls, secureContext: this.tlsContext } }),
      db: address.db,
      // RESP2: all that integers need, and every proxy speaks it.
      protocol: 2,
      replyMapping: 'legacy',
      connectionName: 'weir',
      disableClientInfo: true,
      // The probe does what the ready check would, and more.
      enableReadyCheck: false,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      // 0 makes ioredis reject whatever was in flight when a connection closes.
      maxRetriesPerRequest: 0,
      // Without TLS a connection is the kernel's work, not that of a slow Redis.
      connectTimeout: address.tls ? this.greetingTimeoutMs() : LEAST_CONNECT_TIMEOUT_MS,
      disconnectTimeout: 100,
      retryStrategy: () => this.retryPause(),
    };
  }

  private greetingTimeoutMs(): number {
    return Math.max(LEAST_CONNECT_TIMEOUT_MS, this.options.patienceMs);
  }

  private retryPause(): number {
    return (this.everUp ? this.pauses : this.startupPauses).next();
  }

  private currentLogin(): RedisLogin {
    try {
      this.login = this.options.login?.() ?? this.login;
    } catch (error) {
      this.logOnce('warn', (error as Error).message);
    }
    return this.login;
  }

  private watchHandshake(): void {
    clearTimeout(this.handshakeTimer);
    if (this.closed) return;
    guardHandshake(this.client.stream, (reason) => this.breakOff(reason));
    this.handshakeTimer = setTimeout(() => {
      this.breakOff('no answer to the greeting');
    }, this.greetingTimeoutMs());
  }

  private onReady(): void {
    clearTimeout(this.handshakeTimer);
    if (this.closed) return;
    this.epoch++;
    this.openedCount++;
    this.connected = true;
    this.unansweredProbes = 0;
    this.takeOver();
    // Spares the first calls the detour over NOSCRIPT; who may not SCRIPT LOAD takes that detour.
    this.send('script', ['LOAD', this.options.script], SHORT_TEXT).catch(ignore);
    this.probe();
  }

  /** From here on ioredis waits for no reply: the socket's data are the pipe's. */
  private takeOver(): void {
    const { stream } = this.client;
    stream.removeAllListeners('data');
    this.pipe = new RespPipe(stream, {
      broken: (error) => {
        this.lastError = error.message;
        stream.destroy();
      },
      errorReply: (error) => {
        // A master that became a replica: the name may lead to the new master.
        if (error.code === 'READONLY') this.client.disconnect(true);
      },
    });
  }

  private onClose(): void {
    this.epoch++;
    this.connected = false;
    this.pipe?.end(new Error('the connection is closed'));
    this.pipe = undefined;
    this.stopTimers();
    this.breaker.close();
    if (this.closed) return;
    this.goDown(this.lastError === '' ? 'connection closed' : this.lastError);
    this.lastError = '';
    this.events.lost();
  }

  /** Tries what calls will do, in the right database; ioredis goes on in database 0 when its own SELECT fails. */
  private probe(): void {
    const { epoch } = this;
    const { db } = this.options.address;
    let over = false;
    clearTimeout(this.probeTimer);
    const timer = setTimeout(
      () => {
        over = true;
        this.onSilentProbe();
      },
      Math.max(LEAST_PROBE_TIMEOUT_MS, this.options.patienceMs),
    );
    this.probeTimer = timer;
    const selected = db === 0 ? undefined : this.send('select', [String(db)], SHORT_TEXT);
    const tried = this.options.probe((name, args, bound) => this.send(name, args, bound));
    Promise.all([selected, tried]).then(
      () => {
        if (over || epoch !== this.epoch) return;
        clearTimeout(timer);
        this.goUp();
      },
      (error: Error) => {
        if (over || epoch !== this.epoch) return;
        clearTimeout(timer);
        this.unansweredProbes = 0;
        this.goDown(error.message);
        this.probeLater();
      },
    );
  }

  private onSilentProbe(): void {
    this.goDown('no answer');
    if (++this.unansweredProbes < HUNG_AFTER_PROBES) {
      this.probeLater();
      return;
    }
    this.breakOff('no answer');
  }

  /** Closes the connection at hand; `reason` is logged. */
  private breakOff(reason: string): void {
    this.lastError = reason;
    this.client.stream.destroy();
  }

  private probeLater(): void {
    clearTimeout(this.probeTimer);
    this.probeTimer = setTimeout(() => this.probe(), this.probePauses.next());
  }

  private goUp(): void {
    this.breaker.close();
    this.lastError = '';
    if (this.isUp) return;
    this.isUp = true;
    this.everUp = true;
    this.upSince = performance.now();
    if (this.loggedDown) this.options.log('info', `Redis ${this.options.address.redactedAddress} is up`);
    this.loggedDown = false;
    this.events.up();
    if (!this.advised) this.advise();
  }

  private goDown(reason: string): void {
    if (this.isUp && performance.now() - this.upSince >= STABLE_MS) {
      this.pauses.reset();
      this.probePauses.reset();
      this.loggedReasons.clear();
    }
    // Until it was reached once the settings may be what is wrong.
    if (this.everUp || !this.outage.isDoubtful(reason)) this.logDown(reason);
    else void this.outage.look().then(() => this.logDown(reason));
    if (!this.isUp) return;
    this.isUp = false;
    this.events.down(reason);
  }

  private logDown(reason: string): void {
    if (this.closed) return;
    if (this.logOnce('error', this.outage.sentence(reason))) this.loggedDown = true;
  }

  /** Logs each sentence once an outage, and not too many. Returns whether it did. */
  private logOnce(level: 'warn' | 'error', sentence: string): boolean {
    if (this.loggedReasons.size >= MAX_REASONS || this.loggedReasons.has(sentence)) return false;
    this.loggedReasons.add(sentence);
    this.options.log(level, sentence);
    return true;
  }

  /** Once per process: warns of a Redis that will not keep buckets. One that may not be asked is not. */
  private advise(): void {
    this.advised = true;
    const sections = [this.send('info', ['server'], INFO_TEXT), this.send('info', ['memory'], INFO_TEXT)];
    Promise.all(sections).then((texts) => {
      for (const advice of serverAdvice(texts.join('\n'))) this.options.log('warn', advice);
    }, ignore);
  }

  private stopTimers(): void {
    clearTimeout(this.handshakeTimer);
    clearTimeout(this.probeTimer);
  }
}

function ignore(): void {}
