import { expectState } from '../../../invariant.js';
import { timerMs } from '../../../limiter/clock.js';
import { quantity } from '../../../quantity.js';
import { BackOff } from '../../../runtime/back-off.js';
import { ignore } from '../../../runtime/ignore.js';
import { StallTolerantTimer } from '../../../runtime/stall-tolerant-timer.js';
import { nodeFaultOf } from '../node/faults.js';
import { CircuitBreaker } from './circuit-breaker.js';
import {
  type ConnectionCounts,
  DEFAULT_RETRY,
  type RedisConnectionEvents,
  type RedisLog,
  type RedisServerOptions,
  type SendCommand,
  type StoreConnection,
} from './connection-options.js';
import { expectMaster } from './expect-server.js';
import { Outage } from './outage.js';
import { ReconnectGrace } from './reconnect-grace.js';
import { IS_PROXY } from './redis-error.js';
import type { FoundRedis } from './redis-finder.js';
import { RedisLink } from './redis-link.js';
import { type ReplyBound, SHORT_TEXT } from './reply-bound.js';

const FIRST_PROBE_MS = 100;
/** Minimum timeout of a probe, in milliseconds, if a decision's timeout (REDIS_TIMEOUT) is shorter. */
const MIN_PROBE_TIMEOUT_MS = 500;
/** Default number of consecutive failures that open the breaker. */
const DEFAULT_BREAKER_FAILURES = 5;
/** Number of consecutive probes without a reply after which the connection is replaced. */
const HUNG_AFTER_PROBES = 2;
/**
 * Minimum time up, in milliseconds, after which the next failure starts a new outage. After a shorter time, pauses
 * between probes keep growing, and reasons are not logged again.
 */
const STABLE_MS = 5000;
/**
 * Maximum time that calls wait for a new connection, in milliseconds. The first connection may take as long as a reply.
 */
const RECONNECT_GRACE_MS = 1000;

/**
 * One connection to one Redis. It connects in the background, probes Redis, and reconnects until it is closed ({@link
 * RedisLink}). It goes up after a successful probe. The probe does what calls do, including a write, so it fails on a
 * replica, on a full Redis, or without permissions. The connection goes down when it is lost, when Redis refuses all
 * calls, or when the circuit breaker opens. A successful probe closes the breaker.
 *
 * While the connection is down, calls may wait during the reconnect grace. The grace starts with the first attempt to
 * connect, when Redis is lost, and when another Redis is announced. It ends with the next attempt.
 */
export class RedisConnection implements StoreConnection {
  readonly hasRoom = true;
  private readonly options: RedisServerOptions;
  private readonly events: RedisConnectionEvents;
  private readonly link: RedisLink;
  private readonly breaker: CircuitBreaker;
  private readonly breakerFailures: number;
  /** Maximum silence before Redis counts as hung, in milliseconds. */
  private readonly maxSilenceMs: number;
  private readonly outage: Outage;
  private readonly log: RedisLog = (level, sentence) => this.options.log?.(level, sentence);
  private found: FoundRedis | undefined;
  /** Reason for closing the current connection, which was already counted as a fault. */
  private closeReason = '';
  /** Whether calls can be sent; `ended` is final. */
  private state: 'down' | 'up' | 'ended' = 'down';
  private readonly reconnectGrace = new ReconnectGrace(() => this.endGrace());
  private upSince = 0;
  /**
   * Level at which the next `up` is logged: `info` for the first connection, `warn` after an outage that was logged, so
   * that LOG_LEVEL=warn shows its end, and undefined if no outage was logged.
   */
  private upLevel: 'info' | 'warn' | undefined = 'info';
  /** Why no new login is available. */
  private loginFailure: string | undefined;
  /** Whether the current connection uses a login that is not the newest. */
  private renewalRefused = false;
  /** Number of the current connection, to detect replies of earlier connections. */
  private epoch = 0;
  private readonly probePauses = new BackOff({ ...DEFAULT_RETRY, initialMs: FIRST_PROBE_MS });
  private unansweredProbes = 0;
  private probeTimer: NodeJS.Timeout | undefined;
  /** Whether a probe has succeeded on the current connection. */
  private hasProbed = false;
  /** Timeout of the current probe; undefined without a probe. */
  private probeDeadline: StallTolerantTimer | undefined;

  /** Starts connecting. Throws an Error if the TLS settings are invalid. */
  constructor(options: RedisServerOptions, events: RedisConnectionEvents) {
    this.options = options;
    this.events = events;
    const { names, timeoutMicros, breakerFailures = DEFAULT_BREAKER_FAILURES } = options;
    this.breaker = new CircuitBreaker(breakerFailures);
    this.breakerFailures = breakerFailures;
    this.maxSilenceMs = timerMs(timeoutMicros);
    this.outage = new Outage(names);
    this.link = new RedisLink(options, {
      opened: (found) => this.onOpened(found),
      closed: (reason) => this.onClosed(reason),
      failed: (reason, found) => this.onFailed(reason, found),
      moved: (reason) => {
        // Started first, so that unsent calls wait.
        this.startGrace();
        this.goDown(reason);
      },
      loginFailed: (sentence) => this.onLoginSource(sentence),
      renewed: (refusal) => this.onRenewed(refusal),
    });
    this.startGrace(Math.max(RECONNECT_GRACE_MS, this.maxSilenceMs));
    this.link.start();
  }

  /** Whether calls can be sent. */
  get up(): boolean {
    return this.state === 'up';
  }

  /** Whether calls may wait because Redis may be available soon. */
  get inReconnectGrace(): boolean {
    return this.reconnectGrace.isActive && this.state !== 'up';
  }

  /** The reason why calls cannot be sent now. */
  get downReason(): 'breaker_open' | 'disconnected' {
    return this.breaker.open ? 'breaker_open' : 'disconnected';
  }

  /** Connections after login since start; at most one is open. */
  get connections(): ConnectionCounts {
    return this.link.counts;
  }

  /** Sends one command; see {@link SendCommand}. */
  send(name: string, args: string[], bound: ReplyBound): Promise<unknown> {
    return this.link.send(name, args, bound);
  }

  /** Records an answered call. */
  noteSuccess(): void {
    this.breaker.success();
  }

  /**
   * Records a failed call. If Redis's error applies to all calls, no more are sent; otherwise, consecutive failures
   * open the breaker.
   */
  noteFailure(error: Error): void {
    if (this.state !== 'up') return;
    const { message } = error;
    const { label, reaction } = nodeFaultOf(message);
    this.options.observeFault?.(label);
    if (reaction === 'reconnect') {
      this.reconnect(message);
      return;
    }
    const isOver = reaction === 'count' ? this.breaker.failure() : this.breaker.trip();
    if (!isOver) return;
    const run = `${quantity(this.breakerFailures, 'call')} failed in a row`;
    if (reaction === 'soon') this.startGrace();
    this.goDown(reaction === 'count' ? `${run} (${message})` : message);
    this.unansweredProbes = 0;
    this.probeLater();
  }

  /** Opens the breaker, because Redis has not replied to any call for a while. */
  noteSilence(micros: number): void {
    if (this.state !== 'up' || !this.breaker.trip()) return;
    this.goDown(`no answer for ${Math.round(micros / 1000)} ms`);
    this.unansweredProbes = 0;
    void this.probe();
  }

  /** Closes the connection permanently. */
  close(): void {
    this.state = 'ended';
    this.reconnectGrace.end();
    this.epoch++;
    this.stopProbing();
    this.link.close();
  }

  private onOpened(found: FoundRedis): void {
    this.epoch++;
    this.found = found;
    this.unansweredProbes = 0;
    this.renewalRefused = false;
    this.hasProbed = false;
    void this.probe();
  }

  private onClosed(reason: string): void {
    this.epoch++;
    this.stopProbing();
    this.breaker.close();
    if (this.state === 'up') this.startGrace();
    this.goDown(reason);
    if (reason !== this.closeReason) this.options.observeFault?.(nodeFaultOf(reason).label);
    this.closeReason = '';
    this.events.lost();
  }

  private onFailed(reason: string, found: FoundRedis | undefined): void {
    this.found = found ?? this.found;
    const fault = nodeFaultOf(reason).label;
    this.options.observeFault?.(fault);
    this.goDown(reason);
    // A connection attempt without a reply may have lost a packet, so the grace continues.
    if (fault !== 'no_answer') this.endGrace();
  }

  /** Logs once that no login is available, and once that a login is available again. */
  private onLoginSource(sentence: string | undefined): void {
    if (sentence !== undefined) this.options.observeFault?.('login_source');
    if (sentence === this.loginFailure) return;
    if (sentence === undefined) this.log('info', `a login for Redis ${this.name} is available again`);
    else this.log('warn', sentence);
    this.loginFailure = sentence;
  }

  /** Logs once that Redis continues with the previous login. */
  private onRenewed(refusal: string | undefined): void {
    if (refusal !== undefined) this.options.observeFault?.(nodeFaultOf(refusal).label);
    if (refusal !== undefined && !this.renewalRefused)
      this.log('warn', this.outage.renewalSentence(refusal, this.name));
    this.renewalRefused = refusal !== undefined;
  }

  /** Closes the current connection to open a better one. */
  private reconnect(reason: string): void {
    this.closeReason = reason;
    this.startGrace();
    this.goDown(reason);
    this.link.disconnect(reason);
  }

  /** Starts the reconnect grace. */
  private startGrace(forMs = RECONNECT_GRACE_MS): void {
    this.reconnectGrace.start(forMs);
  }

  private endGrace(): void {
    if (this.reconnectGrace.end() && this.state === 'down') this.events.graceExpired();
  }

  /** Checks a new connection, and tests the commands of calls in the configured database. */
  private async probe(): Promise<void> {
    const { epoch } = this;
    const send: SendCommand = (name, args, bound) => this.send(name, args, bound);
    let timedOut = false;
    const isOver = (): boolean => timedOut || epoch !== this.epoch;
    const expectReply = (): void => {
      this.stopProbing();
      this.probeDeadline = new StallTolerantTimer(Math.max(MIN_PROBE_TIMEOUT_MS, this.maxSilenceMs), () => {
        timedOut = true;
        this.onSilentProbe();
      });
    };
    try {
      expectReply();
      if (!this.hasProbed) {
        // A sharding proxy may close the connection after any other command, so this check comes first.
        await this.events.check(send);
        if (isOver()) return;
        expectReply();
      }
      await this.testCommands(send);
    } catch (error) {
      if (isOver()) return;
      this.stopProbing();
      this.unansweredProbes = 0;
      this.onFailedProbe((error as Error).message);
      return;
    }
    if (isOver()) return;
    this.stopProbing();
    this.hasProbed = true;
    this.goUp();
  }

  private async testCommands(send: SendCommand): Promise<void> {
    const { db } = this.options.address;
    const selected = db === 0 ? undefined : send('select', [String(db)], SHORT_TEXT);
    const isMaster = this.found?.mustBeMaster ? expectMaster(send) : undefined;
    // The name is only for operators, who may have removed the command.
    if (!this.hasProbed) send('client', ['SETNAME', 'weir'], SHORT_TEXT).catch(ignore);
    await Promise.all([selected, isMaster, this.events.probe(send, !this.hasProbed)]);
  }

  private onFailedProbe(reason: string): void {
    const { label, reaction } = nodeFaultOf(reason);
    if (reason.startsWith(IS_PROXY) && !this.outage.hasWorked && this.options.onProxy !== undefined) {
      // The start ends, so the log must not say that weir keeps retrying.
      this.options.onProxy(this.outage.lastSentence(reason, this.name));
      return;
    }
    this.goDown(reason);
    if (reaction !== 'soon') this.endGrace();
    this.options.observeFault?.(label);
    this.closeReason = reason;
    if (reaction === 'reconnect') this.link.disconnect(reason);
    else this.probeLater();
  }

  private onSilentProbe(): void {
    this.goDown('no answer');
    this.endGrace();
    if (++this.unansweredProbes < HUNG_AFTER_PROBES) {
      // The timeout was long enough as a pause.
      void this.probe();
      return;
    }
    this.link.disconnect('no answer');
  }

  private probeLater(): void {
    this.stopProbing();
    this.probeTimer = this.link.attempts.later(
      this.probePauses.next(),
      () => void this.probe(),
      this.outage.hasWorked,
    );
  }

  private stopProbing(): void {
    this.link.attempts.cancel(this.probeTimer);
    this.probeDeadline?.stop();
    this.probeDeadline = undefined;
  }

  private get name(): string {
    return this.found?.name ?? this.options.address.redactedAddress;
  }

  private goUp(): void {
    this.breaker.close();
    this.link.noteWorking();
    if (this.state === 'up') return;
    expectState(this.state === 'down', 'a closed connection does not become available');
    this.state = 'up';
    this.outage.hasWorked = true;
    this.reconnectGrace.end();
    this.upSince = performance.now();
    if (this.upLevel !== undefined) this.log(this.upLevel, `Redis ${this.name} is up`);
    this.upLevel = undefined;
    this.events.up();
  }

  private goDown(reason: string): void {
    if (this.state === 'up' && performance.now() - this.upSince >= STABLE_MS) {
      this.link.resetPauses();
      this.probePauses.reset();
      this.outage.end();
    }
    this.logDown(reason);
    if (this.state !== 'up') return;
    this.state = 'down';
    this.events.down(reason);
  }

  private logDown(reason: string): void {
    if (this.state === 'ended') return;
    if (this.outage.logOnce(reason, this.name, this.log)) this.upLevel = 'warn';
  }
}
