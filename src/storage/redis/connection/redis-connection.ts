import { expectState } from '../../../invariant.js';
import { timerMs } from '../../../limiter/clock.js';
import { quantity } from '../../../quantity.js';
import { BackOff } from '../../../runtime/back-off.js';
import { StallTolerantTimer } from '../../../runtime/stall-tolerant-timer.js';
import { ReconnectGrace } from '../load/reconnect-grace.js';
import { CircuitBreaker } from './circuit-breaker.js';
import {
  type ConnectionCounts,
  DEFAULT_RETRY,
  type RedisConnectionEvents,
  type RedisLog,
  type RedisServerOptions,
  type SendCommand,
} from './connection-options.js';
import { expectMaster, expectServer } from './expect-server.js';
import { Outage } from './outage.js';
import { RedisReplyError } from './redis-error.js';
import { redisFaultOf } from './redis-fault.js';
import type { FoundRedis } from './redis-finder.js';
import { RedisLink } from './redis-link.js';
import { type ReplyBound, SHORT_TEXT } from './reply-bound.js';
import { adviseOn } from './server-advice.js';

const FIRST_PROBE_MS = 100;
/** A probe may take as long as a decision may (REDIS_TIMEOUT), but at least this long. */
const MIN_PROBE_TIMEOUT_MS = 500;
/** Failures in a row that open the breaker where the options do not say. */
const DEFAULT_BREAKER_FAILURES = 5;
/** Probes without an answer after which the connection counts as hung and is made anew. */
const HUNG_AFTER_PROBES = 2;
/**
 * Only after being up for this long is an outage a new one: before, the pauses between probes go on growing and its
 * reasons are not logged again.
 */
const STABLE_MS = 5000;
/** Longest that calls are let wait for a connection that is made anew; for the first one as long as for an answer. */
const RECONNECT_GRACE_MS = 1000;
/** Behind a proxy no probe follows another sooner because of calls that failed. */
const PROXY_PROBE_INTERVAL_MS = 1000;

/**
 * One connection to one Redis that keeps itself up: connects in the background, probes, reconnects for ever
 * ({@link RedisLink}). It is up once a probe (what calls do, a write included, so that a replica, a full Redis or
 * missing rights do not pass) succeeded, and down when the connection is lost, when Redis says that it refuses
 * everything, or when the circuit breaker opens, which a probe closes.
 *
 * While it is down there may be hope: a first attempt to connect, or the first one after Redis was lost or another was
 * announced, has not come to its end. Calls may wait for that.
 */
export class RedisConnection {
  private readonly options: RedisServerOptions;
  private readonly events: RedisConnectionEvents;
  private readonly link: RedisLink;
  private readonly breaker: CircuitBreaker;
  private readonly breakerFailures: number;
  /** How long Redis may be silent before it counts as hung. */
  private readonly maxSilenceMs: number;
  private readonly outage: Outage;
  private readonly log: RedisLog = (level, sentence) => this.options.log?.(level, sentence);
  private found: FoundRedis | undefined;
  /** Why the connection at hand is being closed, which was counted. */
  private closeReason = '';
  private everUp = false;
  /** Whether calls may be made; once it has ended, never again. */
  private state: 'down' | 'up' | 'ended' = 'down';
  private readonly reconnectGrace = new ReconnectGrace(() => this.endGrace());
  private upSince = 0;
  /** Whether the next `up` is worth a line; so is the first. */
  private hasLoggedDown = true;
  private hasAdvised = false;
  /** Why no new login can be had. */
  private loginFailure: string | undefined;
  /** Whether the connection at hand goes on with a login that is not the newest. */
  private renewalRefused = false;
  /** Counts connections, so that answers of an earlier one are known as such. */
  private epoch = 0;
  private readonly probePauses = new BackOff({ ...DEFAULT_RETRY, initialMs: FIRST_PROBE_MS });
  private unansweredProbes = 0;
  /** When the latest probe began. */
  private lastProbeMs = -Infinity;
  private probeTimer: NodeJS.Timeout | undefined;
  /** Whether what answers is known to be no proxy. */
  private isKnownServer = false;
  /** Ends the probe at hand; undefined while there is none. */
  private probeDeadline: StallTolerantTimer | undefined;

  /** Starts connecting. Throws an Error when the TLS settings cannot be used. */
  constructor(options: RedisServerOptions, events: RedisConnectionEvents) {
    this.options = options;
    this.events = events;
    const { address, names, timeoutMicros, breakerFailures = DEFAULT_BREAKER_FAILURES } = options;
    this.breaker = new CircuitBreaker(breakerFailures);
    this.breakerFailures = breakerFailures;
    this.maxSilenceMs = timerMs(timeoutMicros);
    this.outage = new Outage(address, names);
    this.link = new RedisLink(options, {
      opened: (found) => this.onOpened(found),
      closed: (reason) => this.onClosed(reason),
      failed: (reason, found) => this.onFailed(reason, found),
      moved: (reason) => {
        // First, so that what was not sent yet waits.
        this.startGrace();
        this.goDown(reason);
      },
      loginFailed: (sentence) => this.onLoginSource(sentence),
      renewed: (refusal) => this.onRenewed(refusal),
    });
    this.startGrace(Math.max(RECONNECT_GRACE_MS, this.maxSilenceMs));
    this.link.start();
  }

  /** Whether calls may be made. */
  get up(): boolean {
    return this.state === 'up';
  }

  /** Whether Redis may be up in a moment, though it is not: a call may wait for it. */
  get inReconnectGrace(): boolean {
    return this.reconnectGrace.isActive && this.state !== 'up';
  }

  /** Resolves once it is up, or no longer hopeful. */
  whenGraceEnded(): Promise<void> {
    return this.reconnectGrace.whenEnded();
  }

  /** Why calls may not be made now. */
  get downReason(): 'breaker_open' | 'disconnected' {
    return this.breaker.open ? 'breaker_open' : 'disconnected';
  }

  /** Connections since start, logged in; at most one is open. */
  get connections(): ConnectionCounts {
    return this.link.counts;
  }

  /** Sends one command; see {@link SendCommand}. */
  send(name: string, args: string[], bound: ReplyBound): Promise<unknown> {
    return this.link.send(name, args, bound);
  }

  /** A call was answered. */
  noteSuccess(): void {
    this.breaker.success();
  }

  /**
   * A call failed. What Redis says of one may be true of all: then nothing more is asked. Else a run of them opens the
   * breaker.
   */
  noteFailure(error: Error): void {
    if (this.state !== 'up') return;
    const { message } = error;
    const { reason, reaction } = redisFaultOf(message);
    this.options.observeFault?.(reason);
    if (this.isProxied && error instanceof RedisReplyError) {
      this.probeAfterProxyErrors();
      return;
    }
    if (reaction === 'find' || reaction === 'login') {
      this.reconnect(message, reaction === 'login');
      return;
    }
    const isOver = reaction === 'count' ? this.breaker.failure() : this.breaker.trip();
    if (!isOver) return;
    const run = `${quantity(this.breakerFailures, 'call')} in a row failed`;
    if (reaction === 'soon') this.startGrace();
    this.goDown(reaction === 'count' ? `${run} (${message})` : message);
    this.unansweredProbes = 0;
    this.probeLater();
  }

  /**
   * What is said of one server behind a proxy is true of no other, so that the connection stays up for these. A run of
   * failures may be all of them: a probe finds out, one in a while.
   */
  private probeAfterProxyErrors(): void {
    if (!this.breaker.failure()) return;
    this.breaker.close();
    const isProbing = this.probeDeadline !== undefined;
    if (!isProbing && performance.now() - this.lastProbeMs >= PROXY_PROBE_INTERVAL_MS) this.probe();
  }

  /** Nothing was answered for a while, although something was asked. Opens the breaker. */
  noteSilence(micros: number): void {
    if (this.state !== 'up' || !this.breaker.trip()) return;
    this.goDown(`no answer for ${Math.round(micros / 1000)} ms`);
    this.unansweredProbes = 0;
    this.probe();
  }

  /** Ends the connection for good. */
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
    this.isKnownServer = false;
    this.probe();
  }

  private onClosed(reason: string): void {
    this.epoch++;
    this.stopProbing();
    this.breaker.close();
    if (this.state === 'up') this.startGrace();
    this.goDown(reason);
    if (reason !== this.closeReason) this.options.observeFault?.(redisFaultOf(reason).reason);
    this.closeReason = '';
    this.events.lost();
  }

  private onFailed(reason: string, found: FoundRedis | undefined): void {
    this.found = found ?? this.found;
    const fault = redisFaultOf(reason).reason;
    this.options.observeFault?.(fault);
    this.goDown(reason);
    // What was not answered may have been lost on its way.
    if (fault !== 'no_answer') this.endGrace();
  }

  /** Logs once that no login can be had, and once that one can. */
  private onLoginSource(sentence: string | undefined): void {
    if (sentence !== undefined) this.options.observeFault?.('login_source');
    if (sentence === this.loginFailure) return;
    if (sentence === undefined) this.log('info', `Redis ${this.name} can be given a new login again`);
    else this.log('warn', sentence);
    this.loginFailure = sentence;
  }

  /** Logs once that Redis goes on with the login before. */
  private onRenewed(refusal: string | undefined): void {
    if (refusal !== undefined) this.options.observeFault?.(redisFaultOf(refusal).reason);
    if (refusal !== undefined && !this.renewalRefused)
      this.log('warn', this.outage.renewalSentence(refusal, this.name));
    this.renewalRefused = refusal !== undefined;
  }

  /** Closes the connection at hand in the hope for a better one. */
  private reconnect(reason: string, loginRefused: boolean): void {
    this.closeReason = reason;
    this.startGrace();
    this.goDown(reason);
    this.link.disconnect(reason, loginRefused);
  }

  /** Redis may be there in a moment. */
  private startGrace(forMs = RECONNECT_GRACE_MS): void {
    this.reconnectGrace.start(forMs);
  }

  private endGrace(): void {
    if (this.reconnectGrace.end() && this.state === 'down') this.events.graceExpired();
  }

  /** Tries what calls will do, in the right database: the greeting minds no SELECT that failed. */
  private probe(): void {
    const { epoch } = this;
    const { db } = this.options.address;
    let timedOut = false;
    this.stopProbing();
    this.lastProbeMs = performance.now();
    this.probeDeadline = new StallTolerantTimer(Math.max(MIN_PROBE_TIMEOUT_MS, this.maxSilenceMs), () => {
      timedOut = true;
      this.onSilentProbe();
    });
    const send: SendCommand = (name, args, bound) => this.send(name, args, bound);
    const selected = db === 0 ? undefined : send('select', [String(db)], SHORT_TEXT);
    const isMaster = this.found?.mustBeMaster ? expectMaster(send) : undefined;
    const isServer = this.isProxied || this.isKnownServer ? undefined : expectServer(send);
    Promise.all([selected, isMaster, isServer, this.events.probe(send, !this.isKnownServer)]).then(
      () => {
        if (timedOut || epoch !== this.epoch) return;
        this.stopProbing();
        this.isKnownServer = true;
        this.goUp();
      },
      (error: Error) => {
        if (timedOut || epoch !== this.epoch) return;
        this.stopProbing();
        this.unansweredProbes = 0;
        this.onFailedProbe(error.message);
      },
    );
  }

  private onFailedProbe(reason: string): void {
    const { reason: label, reaction } = redisFaultOf(reason);
    this.goDown(reason);
    if (reaction !== 'soon') this.endGrace();
    this.options.observeFault?.(label);
    this.closeReason = reason;
    const isElsewhere = reaction === 'find' || reaction === 'login';
    if (isElsewhere) this.link.disconnect(reason, reaction === 'login');
    else this.probeLater();
  }

  private onSilentProbe(): void {
    this.goDown('no answer');
    this.endGrace();
    if (++this.unansweredProbes < HUNG_AFTER_PROBES) {
      // Waiting for its answer was pause enough.
      this.probe();
      return;
    }
    this.link.disconnect('no answer');
  }

  private probeLater(): void {
    this.stopProbing();
    this.probeTimer = this.link.attempts.later(this.probePauses.next(), () => this.probe(), this.everUp);
  }

  private stopProbing(): void {
    this.link.attempts.cancel(this.probeTimer);
    this.probeDeadline?.stop();
    this.probeDeadline = undefined;
  }

  private get isProxied(): boolean {
    return this.options.proxied !== undefined;
  }

  private get name(): string {
    return this.found?.name ?? this.options.address.redactedAddress;
  }

  private goUp(): void {
    this.breaker.close();
    this.link.noteWorking();
    if (this.state === 'up') return;
    expectState(this.state === 'down', 'a connection that has ended does not come up');
    this.state = 'up';
    this.everUp = true;
    this.reconnectGrace.end();
    this.upSince = performance.now();
    if (this.hasLoggedDown) this.log('info', `Redis ${this.name} is up`);
    this.hasLoggedDown = false;
    this.events.up();
    if (this.hasAdvised || this.isProxied) return;
    this.hasAdvised = true;
    void adviseOn((name, args, bound) => this.send(name, args, bound), this.log);
  }

  private goDown(reason: string): void {
    if (this.state === 'up' && performance.now() - this.upSince >= STABLE_MS) {
      this.link.resetPauses();
      this.probePauses.reset();
      this.outage.end();
    }
    // Until it was reached once the settings may be what is wrong.
    if (this.everUp || this.found === undefined || !this.outage.mayBeMismatch(reason)) this.logDown(reason);
    else void this.diagnoseAndLog(reason, this.found);
    if (this.state !== 'up') return;
    this.state = 'down';
    this.events.down(reason);
  }

  private async diagnoseAndLog(reason: string, { endpoint }: FoundRedis): Promise<void> {
    await this.outage.detectMismatch(endpoint);
    // It takes up to two seconds.
    if (this.state === 'down') this.logDown(reason);
  }

  private logDown(reason: string): void {
    if (this.state === 'ended') return;
    if (this.outage.logOnce(reason, this.name, this.log)) this.hasLoggedDown = true;
  }
}
