import { expectState } from '../../../invariant.js';
import { timerMs } from '../../../limiter/clock.js';
import { BackOff } from '../../../runtime/back-off.js';
import { nodeFaultOf } from '../node/faults.js';
import { ConnectionAttempts } from './connection-attempts.js';
import { type ConnectionCounts, DEFAULT_RETRY, type RedisServerOptions } from './connection-options.js';
import { closeReasonOf, type DialedRedis, dial, type PreparedTls, prepareTls, sendLogin } from './dial.js';
import { fixedLogin, type LoginSource } from './login-source.js';
import type { RedisEndpoint } from './redis-address.js';
import { RedisReplyError } from './redis-error.js';
import { type FoundRedis, fixedFinder, type RedisFinder } from './redis-finder.js';
import type { RedisLogin } from './redis-login.js';
import type { ReplyBound } from './reply-bound.js';

/**
 * Maximum time for a connection, in milliseconds. With TLS, whose handshake takes Redis time, it is REDIS_TIMEOUT if
 * that is longer.
 */
const CONNECT_TIMEOUT_MS = 1000;
/**
 * Maximum time for the reply to the greeting, in milliseconds. A lost packet may never arrive, so a new connection is
 * better. After several attempts without a reply, the time doubles with each attempt, up to REDIS_TIMEOUT.
 */
const GREETING_TIMEOUT_MS = 500;
const MAX_QUICK_GREETINGS = 20;
/** Minimum working time of a connection, in milliseconds, after which it is replaced without a pause. */
const WORKED_MS = 1000;
const CLOSED = new Error('the connection is closed');

/** Events of a {@link RedisLink}. */
export interface RedisLinkEvents {
  /** Commands can be sent. */
  opened(found: FoundRedis): void;
  /** The connection ended with all of its commands, and another attempt follows. `reason` is for the log. */
  closed(reason: string): void;
  /** An attempt to connect failed, and another one follows. */
  failed(reason: string, found: FoundRedis | undefined): void;
  /** Another Redis was announced, and a connection to it follows. */
  moved(reason: string): void;
  /**
   * A new login could not be obtained, so the previous one remains; `sentence` is for the log. Undefined: a login was
   * obtained.
   */
  loginFailed(sentence: string | undefined): void;
  /** The open connection received a new login; `refusal` is Redis's error if it continues with the previous one. */
  renewed(refusal: string | undefined): void;
}

/** A connection on which commands can be sent. */
interface OpenState {
  readonly at: 'open';
  readonly dialed: DialedRedis;
  /** Time since which it is known to work; undefined if it is not. */
  workingSinceMs: number | undefined;
  /** Reason for closing it from this side. */
  closeReason: string;
}

/** State of a {@link RedisLink}. */
type LinkState =
  | { readonly at: 'pause'; readonly retry: NodeJS.Timeout | undefined }
  | { readonly at: 'attempt'; readonly abort: AbortController }
  | OpenState
  | { readonly at: 'end' };

const ABOUT_TO_CONNECT: LinkState = { at: 'pause', retry: undefined };

/** Maintains one connection to a Redis, with login: finds it, connects, and reconnects until it is closed. */
export class RedisLink {
  readonly attempts: ConnectionAttempts;
  readonly #events: RedisLinkEvents;
  readonly #finder: RedisFinder;
  readonly #source: LoginSource;
  /** Maximum time without a reply from Redis, in milliseconds. */
  readonly #maxSilenceMs: number;
  readonly #tls: PreparedTls | undefined;
  readonly #startupPauses: BackOff;
  readonly #pauses = new BackOff(DEFAULT_RETRY);
  #state: LinkState = ABOUT_TO_CONNECT;
  #found: FoundRedis | undefined;
  /** Start of the latest attempt. */
  #attemptedMs = 0;
  /** Number of consecutive attempts without a reply. */
  #silentAttempts = 0;
  #login: RedisLogin = {};
  /** Whether any connection has worked. */
  #hasWorked = false;
  /** Whether the next attempt starts without a pause. */
  #skipsPause = false;
  #opened = 0;

  /** Throws an Error if the TLS settings are invalid. */
  constructor(options: RedisServerOptions, events: RedisLinkEvents) {
    this.attempts = options.attempts ?? new ConnectionAttempts();
    this.#events = events;
    this.#startupPauses = new BackOff(options.startup ?? DEFAULT_RETRY);
    const { address, tls, finder, login, timeoutMicros } = options;
    this.#maxSilenceMs = timerMs(timeoutMicros);
    this.#tls = prepareTls(address.tls, tls);
    this.#finder = finder?.() ?? fixedFinder(address);
    this.#source = login ?? fixedLogin(address);
    this.#finder.onMoved((found) => this.#onMoved(found));
    this.#source.follow({
      renewed: (renewed) => void this.#renew(renewed),
      failed: (sentence) => events.loginFailed(sentence),
    });
  }

  /** Starts connecting. */
  start(): void {
    void this.#connect();
  }

  /** Sends one command. Rejects with Redis's error, or if the connection is lost. */
  send(name: string, args: string[], bound: ReplyBound): Promise<unknown> {
    if (this.#state.at === 'open') return this.#state.dialed.pipe.send(name, args, bound);
    return Promise.reject(new Error('there is no connection'));
  }

  /** Connections after login since start; at most one is open. */
  get counts(): ConnectionCounts {
    const active = this.#state.at === 'open' ? 1 : 0;
    return { active, opened: this.#opened, closed: this.#opened - active };
  }

  /** Records that the current connection works. */
  noteWorking(): void {
    this.#hasWorked = true;
    if (this.#state.at === 'open') this.#state.workingSinceMs ??= performance.now();
  }

  /** Resets the pauses after a stable connection. */
  resetPauses(): void {
    this.#pauses.reset();
  }

  /** Closes the current connection; `reason` is for the log. */
  disconnect(reason: string): void {
    if (this.#state.at !== 'open') return;
    this.#state.closeReason = reason;
    this.#state.dialed.stream.destroy();
  }

  /** Ends the connection and all attempts permanently. */
  close(): void {
    const state = this.#state;
    this.#state = { at: 'end' };
    if (state.at === 'pause') this.attempts.cancel(state.retry);
    if (state.at === 'attempt') state.abort.abort();
    this.#finder.close();
    this.#source.close();
    if (state.at !== 'open') return;
    state.dialed.pipe.end(CLOSED);
    state.dialed.stream.destroy();
  }

  async #connect(): Promise<void> {
    expectState(this.#state.at === 'pause', 'a link opens one connection at a time');
    const abort = new AbortController();
    const { signal } = abort;
    this.#state = { at: 'attempt', abort };
    this.#attemptedMs = performance.now();
    this.#skipsPause = false;
    let found: FoundRedis | undefined;
    try {
      found = await this.#finder.find();
      const login = await this.#source.login();
      this.#login = login;
      if (signal.aborted) return;
      this.#found = found;
      const options = {
        endpoint: found.endpoint,
        tls: this.#tls,
        login,
        // Without TLS, the kernel accepts connections, so a slow Redis does not delay them.
        connectTimeoutMs:
          this.#tls === undefined ? CONNECT_TIMEOUT_MS : Math.max(CONNECT_TIMEOUT_MS, this.#maxSilenceMs),
        greetingTimeoutMs: this.#greetingTimeoutMs(),
      };
      const dialed = await this.attempts.run(() => {
        signal.throwIfAborted();
        return dial(options, signal);
      }, this.#hasWorked);
      if (signal.aborted) {
        dialed.stream.destroy();
        return;
      }
      this.#silentAttempts = 0;
      this.#onOpened(dialed, found);
      // The login changed during the connection attempt.
      if (this.#login !== login) void this.#renew(this.#login);
    } catch (error) {
      if (signal.aborted) return;
      this.#state = ABOUT_TO_CONNECT;
      const { message } = error as Error;
      this.#silentAttempts = nodeFaultOf(message).label === 'no_answer' ? this.#silentAttempts + 1 : 0;
      this.#events.failed(message, found);
      this.#connectLater();
    }
  }

  #greetingTimeoutMs(): number {
    const longestMs = Math.max(2 * GREETING_TIMEOUT_MS, this.#maxSilenceMs);
    return Math.min(
      GREETING_TIMEOUT_MS * 2 ** Math.max(0, this.#silentAttempts - MAX_QUICK_GREETINGS),
      longestMs,
    );
  }

  async #renew(login: RedisLogin): Promise<void> {
    this.#login = login;
    if (this.#state.at !== 'open') return;
    try {
      await sendLogin(this.#state.dialed.pipe, login);
      this.#events.renewed(undefined);
    } catch (error) {
      if (error instanceof RedisReplyError) this.#events.renewed(error.message);
    }
  }

  #onOpened(dialed: DialedRedis, found: FoundRedis): void {
    const { stream } = dialed;
    const open: OpenState = { at: 'open', dialed, workingSinceMs: undefined, closeReason: '' };
    expectState(this.#state.at === 'attempt', 'a connection opens only during an attempt to connect');
    this.#state = open;
    this.#opened++;
    const onClose = (): void => {
      if (this.#state === open) this.#onClosed(open);
    };
    stream.once('close', onClose);
    if (stream.destroyed) onClose();
    else this.#events.opened(found);
  }

  #onClosed({ dialed, workingSinceMs = Infinity, closeReason: brokenOff }: OpenState): void {
    dialed.pipe.end(CLOSED);
    this.#state = ABOUT_TO_CONNECT;
    this.#skipsPause ||= performance.now() - workingSinceMs >= WORKED_MS;
    this.#events.closed(brokenOff || closeReasonOf(dialed.stream));
    this.#connectLater();
  }

  #connectLater(): void {
    if (this.#state.at !== 'pause') return;
    this.attempts.cancel(this.#state.retry);
    if (this.#skipsPause) {
      void this.#connect();
      return;
    }
    const pauses = this.#hasWorked ? this.#pauses : this.#startupPauses;
    // A long attempt replaces the pause.
    const tookMs = performance.now() - this.#attemptedMs;
    const pauseMs = Math.max(0, pauses.next() - tookMs);
    const retry = this.attempts.later(pauseMs, () => void this.#connect(), this.#hasWorked);
    this.#state = { at: 'pause', retry };
  }

  /** Handles the announcement of a different Redis server, or of one that was unreachable before. */
  #onMoved(found: FoundRedis): void {
    const { at } = this.#state;
    const isAnother = this.#found === undefined || !isSame(this.#found.endpoint, found.endpoint);
    if (at === 'end' || (!isAnother && at !== 'pause')) return;
    this.#skipsPause = true;
    const reason = `the Sentinels announced another master, ${found.name}`;
    this.#events.moved(reason);
    if (this.#state.at === 'open') {
      this.disconnect(reason);
      return;
    }
    if (this.#state.at === 'attempt') {
      this.#state.abort.abort();
      this.#state = ABOUT_TO_CONNECT;
    }
    this.#connectLater();
  }
}

function isSame(one: RedisEndpoint, other: RedisEndpoint): boolean {
  if ('path' in one || 'path' in other) return 'path' in one && 'path' in other && one.path === other.path;
  return one.host === other.host && one.port === other.port;
}
