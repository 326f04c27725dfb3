import { timerMs } from '../../../limiter/clock.js';
import { BackOff } from '../../../runtime/back-off.js';
import { ConnectionAttempts } from './connection-attempts.js';
import { type ConnectionCounts, DEFAULT_RETRY, type RedisServerOptions } from './connection-options.js';
import { type DialedRedis, dial, endOf, type PreparedTls, prepareTls, sendLogin } from './dial.js';
import { fixedLogin, type LoginSource } from './login-source.js';
import type { RedisEndpoint } from './redis-address.js';
import { RedisReplyError } from './redis-error.js';
import { redisFaultOf } from './redis-fault.js';
import { type FoundRedis, fixedFinder, type RedisFinder } from './redis-finder.js';
import type { RedisLogin } from './redis-login.js';
import type { ReplyBound } from './reply-bound.js';

/** Longest that a connection may take, milliseconds; with TLS, which is Redis's work, as long as a decision may. */
const CONNECT_TIMEOUT_MS = 1000;
/**
 * How long the answer to the greeting may take: what was lost on its way never comes, and another connection does
 * better. After some that were silent each may take twice as long, up to what a decision may (REDIS_TIMEOUT).
 * Milliseconds.
 */
const GREETING_TIMEOUT_MS = 500;
const QUICK_GREETINGS = 20;
/** What worked for so long is connected to again without a pause. */
const WORKED_MS = 1000;

/** What a {@link RedisLink} tells its owner. */
export interface RedisLinkEvents {
  /** Commands may be sent. */
  opened(found: FoundRedis): void;
  /** The connection ended, and every command on it; another attempt follows. `reason` is for the log. */
  closed(reason: string): void;
  /** An attempt to connect came to nothing; another one follows. */
  failed(reason: string, found: FoundRedis | undefined): void;
  /** Another Redis was announced, and is about to be connected to. */
  moved(reason: string): void;
  /** Why no new login could be had, so that the one before stays, for the log; undefined: one could be had. */
  loginFailed(sentence: string | undefined): void;
  /** The connection at hand was given a new login; `refusal` is what Redis said if it goes on with the one before. */
  renewed(refusal: string | undefined): void;
}

/** Keeps one connection to a Redis, logged in: finds it, connects, connects again for ever. */
export class RedisLink {
  readonly attempts: ConnectionAttempts;
  readonly #options: RedisServerOptions;
  readonly #events: RedisLinkEvents;
  readonly #finder: RedisFinder;
  readonly #source: LoginSource;
  /** How long Redis may be silent. */
  readonly #patienceMs: number;
  readonly #tls: PreparedTls | undefined;
  readonly #startupPauses: BackOff;
  readonly #pauses = new BackOff(DEFAULT_RETRY);
  #dialed: DialedRedis | undefined;
  #found: FoundRedis | undefined;
  /** Ends the latest attempt. */
  #attempt: AbortController | undefined;
  #isConnecting = false;
  /** When it began. */
  #attemptedMs = 0;
  /** Attempts in a row that ended without an answer. */
  #silentAttempts = 0;
  #retry: NodeJS.Timeout | undefined;
  #login: RedisLogin = {};
  #loginRefused = false;
  /** Whether Redis was ever of use. */
  #everWorked = false;
  /** Since when the connection at hand is of use; undefined while it is not known to be. */
  #workingSinceMs: number | undefined;
  /** Whether the next attempt needs no pause. */
  #atOnce = false;
  #opened = 0;
  #closed = false;
  /** Why the connection at hand was broken off by this side. */
  #brokenOff = '';

  /** Throws an Error when the TLS settings cannot be used. */
  constructor(options: RedisServerOptions, events: RedisLinkEvents) {
    this.#options = options;
    this.attempts = options.attempts ?? new ConnectionAttempts();
    this.#events = events;
    this.#startupPauses = new BackOff(options.startup ?? DEFAULT_RETRY);
    const { address, tls, finder, login, timeoutMicros } = options;
    this.#patienceMs = timerMs(timeoutMicros);
    this.#tls = prepareTls(address.tls, tls);
    this.#finder = finder?.() ?? fixedFinder(address);
    this.#source = login ?? fixedLogin(address);
    this.#finder.onMoved((found) => this.#onMoved(found));
    this.#source.follow({
      renewed: (renewed) => void this.#renew(renewed),
      failed: (sentence) => events.loginFailed(sentence),
    });
  }

  /** Begins to connect. */
  start(): void {
    void this.#connect();
  }

  /** Sends one command; rejects with Redis's error, or at once when the connection is lost. */
  send(name: string, args: string[], bound: ReplyBound): Promise<unknown> {
    return this.#dialed?.pipe.send(name, args, bound) ?? Promise.reject(new Error('there is no connection'));
  }

  /** Connections since start, logged in; at most one is open. */
  get counts(): ConnectionCounts {
    const active = this.#dialed === undefined ? 0 : 1;
    return { active, opened: this.#opened, closed: this.#opened - active };
  }

  /** The connection at hand is of use. */
  working(): void {
    this.#everWorked = true;
    this.#workingSinceMs ??= performance.now();
  }

  /** What was good for a while: pauses are short again. */
  resetPauses(): void {
    this.#pauses.reset();
  }

  /** Closes the connection at hand; `reason` is for the log. Redis refused the login, or what it did not allow. */
  breakOff(reason: string, loginRefused = false): void {
    this.#brokenOff = reason;
    this.#loginRefused ||= loginRefused;
    this.#dialed?.stream.destroy();
  }

  /** Ends the connection and all attempts for good. */
  close(): void {
    this.#closed = true;
    this.attempts.cancel(this.#retry);
    this.#attempt?.abort();
    this.#finder.close();
    this.#source.close();
    this.#dialed?.stream.destroy();
    this.#dialed = undefined;
  }

  async #connect(): Promise<void> {
    const attempt = new AbortController();
    const { signal } = attempt;
    this.#attempt = attempt;
    this.#isConnecting = true;
    this.#attemptedMs = performance.now();
    this.#atOnce = false;
    let found: FoundRedis | undefined;
    try {
      found = await this.#finder.find();
      const login = await this.#source.login(this.#loginRefused);
      this.#login = login;
      this.#loginRefused = false;
      if (signal.aborted) return;
      this.#found = found;
      const options = {
        endpoint: found.endpoint,
        tls: this.#tls,
        login,
        db: this.#options.address.db,
        proxied: this.#options.proxied !== undefined,
        // Without TLS a connection is the kernel's work, not that of a slow Redis.
        connectTimeoutMs:
          this.#tls === undefined ? CONNECT_TIMEOUT_MS : Math.max(CONNECT_TIMEOUT_MS, this.#patienceMs),
        greetingTimeoutMs: this.#greetingTimeoutMs(),
      };
      const dialed = await this.attempts.run(() => {
        signal.throwIfAborted();
        return dial(options, signal);
      }, this.#everWorked);
      if (signal.aborted) {
        dialed.stream.destroy();
        return;
      }
      this.#isConnecting = false;
      this.#silentAttempts = 0;
      this.#onOpened(dialed, found);
      // Another one came while the connection was made.
      if (this.#login !== login) void this.#renew(this.#login);
    } catch (error) {
      if (signal.aborted) return;
      this.#isConnecting = false;
      const { message } = error as Error;
      const fault = redisFaultOf(message);
      this.#loginRefused = fault.reaction === 'login';
      this.#silentAttempts = fault.reason === 'no_answer' ? this.#silentAttempts + 1 : 0;
      this.#events.failed(message, found);
      this.#connectLater();
    }
  }

  #greetingTimeoutMs(): number {
    const longestMs = Math.max(2 * GREETING_TIMEOUT_MS, this.#patienceMs);
    return Math.min(
      GREETING_TIMEOUT_MS * 2 ** Math.max(0, this.#silentAttempts - QUICK_GREETINGS),
      longestMs,
    );
  }

  async #renew(login: RedisLogin): Promise<void> {
    this.#login = login;
    if (this.#dialed === undefined) return;
    try {
      await sendLogin(this.#dialed.pipe, login);
      this.#events.renewed(undefined);
    } catch (error) {
      if (error instanceof RedisReplyError) this.#events.renewed(error.message);
    }
  }

  #onOpened(dialed: DialedRedis, found: FoundRedis): void {
    const { stream } = dialed;
    this.#dialed = dialed;
    this.#opened++;
    this.#workingSinceMs = undefined;
    this.#brokenOff = '';
    const onClose = (): void => {
      if (this.#dialed !== dialed) return;
      this.#onClosed(this.#brokenOff || endOf(stream));
    };
    stream.once('close', onClose);
    if (stream.destroyed) onClose();
    else this.#events.opened(found);
  }

  #onClosed(reason: string): void {
    this.#dialed?.pipe.end(new Error('the connection is closed'));
    this.#dialed = undefined;
    const workedMs = performance.now() - (this.#workingSinceMs ?? Infinity);
    this.#atOnce ||= workedMs >= WORKED_MS;
    this.#workingSinceMs = undefined;
    if (this.#closed) return;
    this.#events.closed(reason);
    this.#connectLater();
  }

  #connectLater(): void {
    if (this.#closed) return;
    this.attempts.cancel(this.#retry);
    if (this.#atOnce) {
      void this.#connect();
      return;
    }
    const pauses = this.#everWorked ? this.#pauses : this.#startupPauses;
    // An attempt that took long was a pause by itself.
    const tookMs = performance.now() - this.#attemptedMs;
    const pauseMs = Math.max(0, pauses.next() - tookMs);
    this.#retry = this.attempts.later(pauseMs, () => void this.#connect(), this.#everWorked);
  }

  /** Another Redis was announced, or one that could not be reached is announced again. */
  #onMoved(found: FoundRedis): void {
    if (this.#closed) return;
    const isAnother = this.#found === undefined || !isSame(this.#found.endpoint, found.endpoint);
    const isBusy = this.#dialed !== undefined || this.#isConnecting;
    if (!isAnother && isBusy) return;
    this.#atOnce = true;
    const reason = `the Sentinels announced another master, ${found.name}`;
    this.#events.moved(reason);
    if (this.#dialed !== undefined) {
      this.breakOff(reason);
      return;
    }
    this.#attempt?.abort();
    this.#connectLater();
  }
}

function isSame(one: RedisEndpoint, other: RedisEndpoint): boolean {
  if ('path' in one || 'path' in other) return 'path' in one && 'path' in other && one.path === other.path;
  return one.host === other.host && one.port === other.port;
}
