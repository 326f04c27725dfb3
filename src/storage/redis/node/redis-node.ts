import { StorageError } from '../../../limiter/bucket-store.js';
import { timerMs } from '../../../limiter/clock.js';
import type { StoreFault } from '../../../limiter/failure-policy.js';
import { Redis, ReplyError } from '../../../runtime/ioredis.js';
import { authenticate, withoutArguments } from '../../../runtime/redis-auth.js';
import { ignore } from '../../../runtime/signal.js';
import { networkMessage } from '../../../runtime/texts.js';
import { BackOff, StallTolerantTimer } from '../../../runtime/timers.js';
import { withTimeout } from '../../../runtime/turns.js';
import {
  type ConnectionCounts,
  DEFAULT_RETRY,
  type RedisConnectionEvents,
  type RedisLogin,
  type RedisServerOptions,
  type SendCommand,
} from '../connection/connection-options.js';
import { IS_PROXY, RedisReplyError, UnknownReplyError } from '../connection/redis-error.js';
import { evictionWarning } from '../probe.js';
import type { ScriptReply, ScriptRequest } from '../redis-backend.js';
import { shownServer } from '../with-redis.js';
import type { ConnectorOwner } from './connector.js';
import { nodeFaultOf, nodeFaultText } from './faults.js';
import { encodeCommand, RawCommand } from './raw-command.js';
import { redisOptions } from './redis-options.js';

/** Minimum timeout of a login and a probe, in milliseconds, if a decision's timeout (REDIS_TIMEOUT) is shorter. */
const MIN_ANSWER_MS = 500;
/** Number of consecutive failures of calls that open the circuit breaker. */
const BREAKER_FAILURES = 5;
/** Pause before the next probe, in milliseconds; the short one for faults that usually end within seconds. */
const PROBE_PAUSE_MS = 1000;
const SHORT_PROBE_PAUSE_MS = 200;
/**
 * Pauses between attempts to connect, in milliseconds, after a connection has worked: each is twice the previous one,
 * up to the maximum. After about five seconds, it is the long one.
 */
const RETRY_MS = { initial: 25, max: 200, long: 1000 };
const SHORT_RETRIES = 25;
/** Minimum time up, in milliseconds, after which the next failure starts a new outage: new pauses and log lines. */
const STABLE_MS = 5000;
/** Maximum time that calls wait for a new connection, in milliseconds. */
const RECONNECT_GRACE_MS = 1000;
/** Memory of unanswered commands beyond which calls wait, in bytes. It counts from the write to the reply or close. */
export const MAX_UNANSWERED_BYTES = 4 * 1024 * 1024;
const NO_ANSWER = 'no answer';
const LOST = 'the connection was closed';
const NO_MASTER = 'All sentinels are unreachable';
const MOVED = 'the Sentinels announced another master';

/**
 * One connection to one Redis, through ioredis. It goes up after a login and a probe that does what calls do. It goes
 * down when it is lost, when Redis refuses all calls, or when the circuit breaker opens. Then calls are answered at
 * once until a probe succeeds. Calls that are sent are never sent again by this connection or by ioredis.
 */
export class RedisNode {
  readonly #options: RedisServerOptions;
  readonly #events: RedisConnectionEvents;
  readonly #unfollowLogin: () => void;
  readonly #redis: Redis;
  /** Consecutive failures of calls. A success of a probe closes the breaker. */
  #failures = 0;
  #isBreakerOpen = false;
  readonly #answerMs: number;
  readonly #startupPauses: BackOff;
  readonly #owner: ConnectorOwner = {
    unreadBytes: 0,
    leaving: () => {
      if (this.#redis.status === 'ready') this.#closeReason ??= MOVED;
    },
    sentinelFailed: (message) => {
      this.#sentinelError = message;
    },
  };
  #state: 'down' | 'up' | 'ended' = 'down';
  #everUp = false;
  #upSinceMs = 0;
  /** Number of the current connection, to ignore results of earlier ones. */
  #epoch = 0;
  #opened = 0;
  /** How far the current connection came. */
  #progress: 'closed' | 'connecting' | 'loggedIn' | 'worked' = 'connecting';
  /** Why the current connection ends, if this side or an error ended it. */
  #closeReason: string | undefined;
  /** Attempts to connect since the last stable connection. */
  #attempts = 0;
  /** Consecutive attempts to connect whose greeting got no reply. */
  #silentGreetings = 0;
  /** Set while calls wait because Redis may be up soon. */
  #grace: StallTolerantTimer | undefined;
  #probeTimer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #unansweredBytes = 0;
  #isCorked = false;
  /** Why the latest Sentinel announced no master. */
  #sentinelError = '';
  /** Faults of this outage that the log shows. */
  readonly #logged = new Set<string>();
  #upLevel: 'info' | 'warn' | undefined = 'info';

  /** Starts connecting. Throws an Error if the TLS settings are invalid. */
  constructor(options: RedisServerOptions, events: RedisConnectionEvents) {
    this.#options = options;
    this.#events = events;
    const { login, startup, timeoutMicros } = options;
    this.#answerMs = Math.max(MIN_ANSWER_MS, timerMs(timeoutMicros));
    this.#startupPauses = new BackOff(startup ?? DEFAULT_RETRY);
    this.#redis = new Redis(redisOptions(options, this.#owner));
    this.#redis.on('error', (error: Error) => this.#onError(error));
    this.#redis.on('sentinelError', ({ message }: Error) => {
      if (!message.endsWith('Connection is closed.')) this.#sentinelError = message;
    });
    this.#redis.on('ready', () => this.#onOpened());
    // ioredis emits this event before the promises of the commands that it rejects are handled.
    this.#redis.on('end', () => this.#onClosed());
    this.#unfollowLogin =
      login?.follow({
        renewed: (renewed) => void this.#renew(renewed),
        failed: (sentence) => this.#onLoginSource(sentence),
      }) ?? ignore;
    this.#startGrace(Math.max(RECONNECT_GRACE_MS, timerMs(timeoutMicros)));
    this.#connect();
  }

  /** Whether calls can be sent. */
  get up(): boolean {
    return this.#state === 'up' && this.#isWritable;
  }

  /** Whether calls may wait because Redis may be available soon. */
  get inReconnectGrace(): boolean {
    // A connection that is up but not writable is about to close, so that a grace follows.
    return !this.up && (this.#grace !== undefined || this.#state === 'up');
  }

  /** The reason why calls cannot be sent now. */
  get downReason(): 'breaker_open' | 'disconnected' {
    return this.#isBreakerOpen ? 'breaker_open' : 'disconnected';
  }

  /** Whether the memory of unanswered commands allows another call. */
  get hasRoom(): boolean {
    return this.#unansweredBytes < MAX_UNANSWERED_BYTES;
  }

  /** Connections after login since start; at most one is open. */
  get connections(): ConnectionCounts {
    const active = this.#isLoggedIn ? 1 : 0;
    return { active, opened: this.#opened, closed: this.#opened - active };
  }

  /**
   * The number of the current connection; undefined while calls cannot be sent. A later connection may lead to a Redis
   * that does not have the changes of this one.
   */
  get connectionId(): number | undefined {
    return this.up ? this.#opened : undefined;
  }

  readonly send: SendCommand = (name, args) => {
    if (!this.#isWritable) return Promise.reject(new Error(LOST));
    const { text, ascii } = encodeCommand(name, args);
    const { length } = text;
    this.#unansweredBytes += length;
    this.#cork();
    return new Promise((resolve, reject) => {
      const done = (reply: Buffer | Error): void => {
        this.#unansweredBytes -= length;
        this.#owner.unreadBytes = 0;
        if (reply instanceof Error) reject(reply);
        else resolve(reply);
      };
      new RawCommand(ascii ? text : Buffer.from(text), done).sendTo(this.#redis);
    });
  };

  /** Runs commands whose replies {@link send} does not accept. Rejects without a connection, or after `ms`. */
  async query<T>(ms: number, use: (redis: Redis) => Promise<T>): Promise<T> {
    if (!this.#isWritable) throw new Error(LOST);
    try {
      const result = await withTimeout(ms, use(this.#redis), () => {
        throw new Error(`${NO_ANSWER} within ${ms} ms`);
      });
      // An idle node of a cluster gets no other commands.
      this.#owner.unreadBytes = 0;
      return result;
    } catch (error) {
      throw error instanceof ReplyError ? new RedisReplyError(error.message) : error;
    }
  }

  /**
   * Runs a script that is not a take, see RedisBackend. `timeMicros` replaces the clock of Redis. Failures do not open
   * the circuit breaker, because only takes decide whether Redis works.
   */
  async runScript(
    { script, key, args }: ScriptRequest,
    timeMicros: number | undefined,
  ): Promise<ScriptReply> {
    const name = this.#options.address.redactedAddress;
    if (!this.up) return new StorageError(this.downReason, `Redis ${name} is unavailable`, { unsent: true });
    if (!this.hasRoom)
      return new StorageError('overloaded', `Redis ${name} has not answered the previous requests`);
    const sent = this.send('eval', [script, '1', key, String(timeMicros ?? ''), ...args]);
    const reply = sent.then(String, (error: Error) => {
      if (!(error instanceof RedisReplyError))
        return new StorageError('timeout', `the connection to Redis ${name} was lost before the reply`);
      if (nodeFaultOf(error.message).reaction === 'reconnect') this.noteFailure(error);
      return new StorageError('rejected', error.message);
    });
    const late = () => new StorageError('timeout', `Redis ${name} did not answer in time`);
    return withTimeout(this.#answerMs, reply, late);
  }

  /** Records an answered call. */
  noteSuccess(): void {
    this.#failures = 0;
  }

  /** Records a failed call. */
  noteFailure(error: Error): void {
    if (error instanceof UnknownReplyError) this.#breakOff(error.message);
    // The end of a lost connection is reported once, not with each of its calls.
    if (this.#state !== 'up' || !(error instanceof RedisReplyError)) return;
    const { message } = error;
    const { label, reaction } = nodeFaultOf(message);
    if (reaction === 'reconnect') {
      this.#leave(message);
      return;
    }
    this.#options.observeFault?.(label);
    if (reaction === 'count' && ++this.#failures < BREAKER_FAILURES) return;
    this.#isBreakerOpen = true;
    if (reaction === 'soon') this.#startGrace();
    this.#goDown(message);
    this.#probeLater(label);
  }

  /** Records that Redis has not replied to any call for a while. */
  noteSilence(micros: number): void {
    if (this.#state !== 'up') return;
    this.#isBreakerOpen = true;
    this.#goDown(`${NO_ANSWER} for ${Math.round(micros / 1000)} ms`);
    void this.#probe();
  }

  /** Closes the connection permanently. */
  close(): void {
    this.#state = 'ended';
    this.#epoch++;
    this.#progress = 'closed';
    this.#endGrace();
    clearTimeout(this.#probeTimer);
    clearTimeout(this.#retryTimer);
    this.#unfollowLogin();
    this.#redis.disconnect();
    this.#redis.stream?.destroy();
  }

  get #isWritable(): boolean {
    return this.#redis.status === 'ready' && this.#redis.stream.writable;
  }

  get #isLoggedIn(): boolean {
    return this.#progress !== 'closed' && this.#progress !== 'connecting';
  }

  /** Combines all commands of this turn of the event loop into one write. */
  #cork(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    const { stream } = this.#redis;
    stream.cork();
    queueMicrotask(() => {
      this.#isCorked = false;
      stream.uncork();
    });
  }

  #onOpened(): void {
    this.#epoch++;
    this.#owner.unreadBytes = 0;
    void this.#probe();
  }

  /** Handles an error of the connection, of a reply that nobody asked for, or of the Sentinels. */
  #onError(error: Error): void {
    const message = networkMessage(error);
    if (!message.startsWith(NO_MASTER)) {
      this.#breakOff(withoutArguments(withoutIntroduction(message)));
      return;
    }
    const reason = withoutArguments(`${NO_MASTER}: ${this.#sentinelError}`);
    this.#options.observeFault?.(nodeFaultOf(reason).label);
    this.#goDown(reason);
    this.#endGrace();
  }

  /** Closes the connection without waiting for replies. */
  #breakOff(reason: string): void {
    this.#closeReason ??= reason;
    this.#redis.stream?.destroy();
  }

  /** Closes the connection to open a better one, after the replies to calls in flight. Calls wait for the other one. */
  #leave(reason: string): void {
    this.#closeReason = reason;
    this.#startGrace();
    this.#goDown(reason);
    this.#redis.disconnect(true);
  }

  /** Handles the end of a connection, or of an attempt to connect or to find the master. */
  #onClosed(): void {
    if (this.#state === 'ended') return;
    const reason = this.#closeReason ?? LOST;
    const hadWorked = this.#progress === 'worked';
    const wasUp = this.#state === 'up';
    this.#closeReason = undefined;
    this.#epoch++;
    this.#progress = 'closed';
    clearTimeout(this.#probeTimer);
    this.#closeBreaker();
    const { label } = nodeFaultOf(reason);
    this.#options.observeFault?.(label);
    if (wasUp) this.#startGrace();
    this.#goDown(reason);
    // An attempt to connect without a reply may have lost a packet, so the grace continues.
    if (!hadWorked && label !== 'no_answer') this.#endGrace();
    this.#retryTimer = setTimeout(() => this.#connect(), this.#pauseMs());
  }

  #connect(): void {
    this.#progress = 'connecting';
    this.#redis.connect().catch(ignore);
  }

  #pauseMs(): number {
    if (!this.#everUp) return this.#startupPauses.next();
    const before = this.#attempts++;
    if (before === 0) return 0;
    return before < SHORT_RETRIES ? Math.min(RETRY_MS.initial * 2 ** before, RETRY_MS.max) : RETRY_MS.long;
  }

  /** Logs in, checks a new connection, and tests the commands of calls in the configured database. */
  async #probe(): Promise<void> {
    const epoch = this.#epoch;
    const isCurrent = (): boolean => epoch === this.#epoch;
    clearTimeout(this.#probeTimer);
    try {
      if (this.#progress === 'connecting') {
        const { address, login: source } = this.#options;
        const login = (await source?.login()) ?? address;
        await this.#within(this.#greetingMs(), this.#greet(login));
        if (!isCurrent()) return;
        this.#progress = 'loggedIn';
        this.#opened++;
        this.#silentGreetings = 0;
      }
      if (this.#progress === 'loggedIn') await this.#within(this.#answerMs, this.#events.check(this.send));
      if (isCurrent()) await this.#within(this.#answerMs, this.#testCommands());
    } catch (error) {
      // The close of a lost connection has a better reason.
      if (isCurrent() && this.#isWritable) this.#onFailedProbe((error as Error).message);
      return;
    }
    if (isCurrent()) this.#goUp();
  }

  /** Resolves with the commands, whose replies may take `ms`. Closes the connection after that. */
  async #within(ms: number, commands: Promise<void>): Promise<void> {
    const deadline = new StallTolerantTimer(ms, () => {
      if (this.#progress === 'connecting') this.#silentGreetings++;
      this.#breakOff(NO_ANSWER);
    });
    try {
      await commands;
    } finally {
      deadline.stop();
    }
  }

  /** A lost packet may never arrive, so a new connection is better. A busy Redis gets more time with each attempt. */
  #greetingMs(): number {
    return Math.min(MIN_ANSWER_MS * 2 ** this.#silentGreetings, this.#answerMs);
  }

  async #testCommands(): Promise<void> {
    const { db } = this.#options.address;
    const isNew = this.#progress === 'loggedIn';
    const selected = db === 0 ? undefined : this.send('select', [String(db)]);
    // The name is only for operators, who may have removed the command.
    if (isNew) this.send('client', ['SETNAME', 'weir']).catch(ignore);
    await Promise.all([selected, this.#events.probe(this.send, isNew)]);
  }

  #onFailedProbe(reason: string): void {
    const { label, reaction } = nodeFaultOf(reason);
    if (reason.startsWith(IS_PROXY) && !this.#everUp && this.#options.onProxy !== undefined) {
      // The start ends, so the log must not say that weir keeps retrying.
      this.#options.onProxy(`Redis ${this.#name} cannot be used: ${this.#explained(reason)}`);
      return;
    }
    if (reaction === 'reconnect') {
      if (label === 'readonly') this.#owner.isReplica = true;
      this.#breakOff(reason);
      return;
    }
    this.#options.observeFault?.(label);
    this.#goDown(reason);
    if (reaction !== 'soon') this.#endGrace();
    this.#probeLater(label);
  }

  #probeLater(label: StoreFault): void {
    clearTimeout(this.#probeTimer);
    const isShort = label === 'loading' || label === 'moved';
    const pauseMs = isShort ? SHORT_PROBE_PAUSE_MS : PROBE_PAUSE_MS;
    this.#probeTimer = setTimeout(() => void this.#probe(), pauseMs);
  }

  #goUp(): void {
    this.#closeBreaker();
    this.#progress = 'worked';
    if (this.#state !== 'down') return;
    this.#state = 'up';
    this.#endGrace();
    this.#upSinceMs = performance.now();
    if (this.#upLevel !== undefined) this.#options.log?.(this.#upLevel, `Redis ${this.#name} is up`);
    this.#upLevel = undefined;
    const isFirst = !this.#everUp;
    this.#everUp = true;
    this.#events.up();
    if (isFirst) void this.#warnOfEviction();
  }

  async #warnOfEviction(): Promise<void> {
    const warning = await evictionWarning(this.send);
    if (warning !== undefined) this.#options.log?.('warn', `Redis ${this.#name} ${warning}`);
  }

  #closeBreaker(): void {
    this.#failures = 0;
    this.#isBreakerOpen = false;
  }

  #goDown(reason: string): void {
    if (this.#state === 'ended') return;
    const wasUp = this.#state === 'up';
    if (wasUp && performance.now() - this.#upSinceMs >= STABLE_MS) {
      this.#attempts = 0;
      this.#logged.clear();
    }
    this.#state = 'down';
    const { label } = nodeFaultOf(reason);
    if (!this.#logged.has(label)) {
      this.#logged.add(label);
      this.#upLevel = 'warn';
      const sentence = `Redis ${this.#name} cannot be used, and weir keeps retrying: ${this.#explained(reason)}`;
      this.#options.log?.('error', sentence);
    }
    if (wasUp) this.#events.down(reason);
  }

  #startGrace(ms = RECONNECT_GRACE_MS): void {
    this.#grace?.stop();
    this.#grace = new StallTolerantTimer(ms, () => this.#endGrace());
  }

  #endGrace(): void {
    if (this.#grace === undefined) return;
    this.#grace.stop();
    this.#grace = undefined;
    if (this.#state === 'down') this.#events.graceExpired();
  }

  /** Logs in. Without a login, sends PING, whose error does not matter, because the probe detects its cause. */
  async #greet(login: RedisLogin): Promise<void> {
    if (login.password !== undefined) return this.#authenticate(login);
    try {
      await this.send('ping', []);
    } catch (error) {
      if (!(error instanceof RedisReplyError)) throw error;
    }
  }

  #authenticate({ username, password = '' }: RedisLogin): Promise<void> {
    return authenticate((args) => this.send('auth', args), username, password);
  }

  /** Uses a new login on the open connection, which continues with the previous one if Redis refuses the new one. */
  async #renew(login: RedisLogin): Promise<void> {
    if (!this.#isLoggedIn) return;
    try {
      await this.#authenticate(login);
      this.#logged.delete('renewal');
    } catch (error) {
      if (!(error instanceof RedisReplyError)) return;
      const { message } = error;
      this.#options.observeFault?.(nodeFaultOf(message).label);
      if (this.#logged.has('renewal')) return;
      this.#logged.add('renewal');
      this.#options.log?.(
        'warn',
        `Redis ${this.#name} refuses the new login, and the connection keeps the previous login: ` +
          this.#explained(message),
      );
    }
  }

  /** Logs once that no login is available, and once that a login is available again. */
  #onLoginSource(sentence: string | undefined): void {
    const wasLogged = this.#logged.has('login_source');
    if (sentence === undefined) {
      if (!this.#logged.delete('login_source')) return;
      this.#options.log?.('info', `a login for Redis ${this.#name} is available again`);
      return;
    }
    this.#options.observeFault?.('login_source');
    if (!wasLogged) this.#options.log?.('warn', sentence);
    this.#logged.add('login_source');
  }

  #explained(reason: string): string {
    return nodeFaultText(reason, this.#options.prefix ?? 'REDIS');
  }

  get #name(): string {
    return shownServer(this.#options.address, this.#redis.stream);
  }
}

/** Redis states the reason why it closes a connection, which ioredis reports as a reply that nobody asked for. */
function withoutIntroduction(message: string): string {
  const [introduction = '', last] = /^Command queue state error.*? Last (error|reply): /s.exec(message) ?? [];
  return last === 'reply' ? 'unexpected reply' : message.slice(introduction.length);
}
