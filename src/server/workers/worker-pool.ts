import cluster, { type Worker } from 'node:cluster';
import type { AdminCaller } from '../../admin/admin-access.js';
import type { AdminAnswer } from '../../admin/admin-endpoint.js';
import type { TopReport, TopRequest } from '../../admin/top/top-request.js';
import type { RateLimitResponse } from '../../codec/messages.js';
import { expectState } from '../../invariant.js';
import type { Refusal } from '../../service/refusal.js';
import type { Family } from '../../telemetry/family.js';
import type { Logger } from '../../telemetry/logger.js';
import { StartError } from '../start-error.js';
import { AggregatedMetrics } from './aggregated-metrics.js';
import { type CallableWorker, CallClient } from './call-client.js';
import type { WorkerRows } from './calls.js';
import { ConnectionDispatcher } from './connection-dispatcher.js';
import {
  type DecideArguments,
  ForwardedDecisions,
  forwardAdminCall,
  type OnUnanswered,
} from './forwarded-calls.js';
import { Heartbeat } from './heartbeat.js';
import type { FromWorker, ToWorker } from './messages.js';
import { WorkerMetrics } from './worker-metrics.js';
import { emptySlot, type WorkerSlot, type WorkerState } from './worker-slot.js';
import { WorkerWatchdog } from './worker-watchdog.js';

export interface WorkerPoolOptions {
  readonly count: number;
  /** Script that workers run; the same as for this process. */
  readonly entry: string;
  /** Distribution of connections; see docs/operate/workers.md. */
  readonly scheduling: 'round-robin' | 'kernel' | 'reuse-port';
  readonly log: Logger;
  /** Called if no worker reached Redis in time. */
  onGivenUp(error: StartError): void;
  readonly onUnanswered: OnUnanswered;
  /** Maximum milliseconds of a decision (REDIS_TIMEOUT). */
  readonly decisionTimeoutMs: number;
  /** Returns the `start` message of a worker. Called for each replacement, too. */
  start(): Extract<ToWorker, { kind: 'start' }>;
}

/** Milliseconds after which a crash is not related to the previous one, so that the back-off restarts. */
const STABLE_MS = 10_000;
/** Milliseconds that workers get to close, in addition to the time for running calls. */
const EXIT_MARGIN_MS = 5000;

/** Maximum number of policy slices in the channel of a worker, so that other messages do not wait behind many. */
const MAX_UNACKNOWLEDGED_SLICES = 8;

/**
 * Runs workers that share one gRPC port (node:cluster). A worker that exits unexpectedly or is silent for too long is
 * replaced, with growing pauses while replacements exit as well.
 */
export class WorkerPool {
  /** Number of replaced workers since the start. */
  restarts = 0;
  /** Number of workers that were killed because they were silent. */
  silentKilled = 0;
  readonly #options: WorkerPoolOptions;
  readonly #slots: WorkerSlot[];
  readonly #aggregatedMetrics = new AggregatedMetrics();
  readonly #aggregatedStats = new AggregatedMetrics();
  readonly #calls = new CallClient();
  readonly #decisions: ForwardedDecisions;
  readonly #connections = new ConnectionDispatcher();
  readonly #watchdog: WorkerWatchdog<WorkerSlot>;
  #closing = false;
  /** Whether any worker ever reached Redis. */
  #storeReached = false;
  #grpc = '';
  #onSliceAcknowledged: (() => void) | undefined;
  /** Ends the start; undefined afterwards. */
  #onStarted: ((error?: StartError) => void) | undefined;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#decisions = new ForwardedDecisions(this.#calls, options.decisionTimeoutMs);
    this.#slots = Array.from({ length: options.count }, emptySlot);
    this.#watchdog = new WorkerWatchdog({
      workers: () => this.#slots.filter(({ worker }) => worker !== undefined),
      onSilent: (slot) => this.#onSilent(slot),
      replace: (slot) => this.#killSilent(slot),
    });
  }

  /**
   * Starts all workers. Resolves with the address of the gRPC port once it is open in each of them. Rejects with {@link
   * StartError}.
   */
  start(): Promise<string> {
    cluster.schedulingPolicy =
      this.#options.scheduling === 'round-robin' ? cluster.SCHED_RR : cluster.SCHED_NONE;
    cluster.setupPrimary({ exec: this.#options.entry, args: ['serve'], serialization: 'advanced' });
    return new Promise((resolve, reject) => {
      this.#onStarted = (error) => {
        this.#onStarted = undefined;
        if (error === undefined) resolve(this.#grpc);
        else reject(error);
      };
      for (const slot of this.#slots) this.#fork(slot);
      this.#watchdog.start();
    });
  }

  /** Running workers. */
  get workers(): readonly WorkerState[] {
    return this.#slots.flatMap(({ worker, health, heartbeat }) => {
      if (worker === undefined) return [];
      const silentMs = heartbeat.silent ? heartbeat.silentMs : undefined;
      return { id: worker.id, pid: worker.process.pid ?? 0, health, silentMs };
    });
  }

  /** Sends to each worker that has started. A worker that starts later gets the current state with `start`. */
  broadcast(message: ToWorker): void {
    for (const slot of this.#slots) {
      if (!slot.started || slot.worker?.isConnected() !== true) continue;
      slot.worker.send(message);
      if (message.kind === 'policies_slice') slot.unacknowledgedSlices++;
    }
  }

  /** Resolves once no worker that answers has many unread policy slices. Only one caller may wait. */
  async caughtUp(): Promise<void> {
    while (
      this.#slots.some(
        ({ unacknowledgedSlices, heartbeat }) =>
          unacknowledgedSlices > MAX_UNACKNOWLEDGED_SLICES && !heartbeat.silent,
      )
    ) {
      await new Promise<void>((resolve) => {
        this.#onSliceAcknowledged = resolve;
      });
    }
  }

  /** Returns the sum of the metrics of all processes, including `own`. */
  async metrics(own: readonly Family[]): Promise<readonly Family[]> {
    await this.#collectAllMetrics();
    return this.#aggregatedMetrics.sum([own, ...this.#slots.map(({ metrics }) => metrics.metrics)]);
  }

  /** Returns the sum of the statistics of all processes, including `own`. */
  async stats(own: readonly Family[]): Promise<readonly Family[]> {
    await this.#collectAllMetrics();
    return this.#aggregatedStats.sum([own, ...this.#slots.map(({ metrics }) => metrics.stats)]);
  }

  /** Decides a request in a worker that serves. During a drain, a worker that can reach its store decides. */
  decide(...request: DecideArguments): Promise<RateLimitResponse | Refusal> {
    return this.#decisions.ask(() => this.#availableWorkers(), ...request);
  }

  /** Runs an operator's command in a worker that serves. Never rejects. */
  administer(question: unknown, caller: AdminCaller): Promise<AdminAnswer> {
    const { onUnanswered } = this.#options;
    return forwardAdminCall(this.#calls, () => this.#availableWorkers(), { question, caller }, onUnanswered);
  }

  /** Collects the most active buckets from all workers that answer. */
  top(ask: TopRequest): Promise<readonly TopReport[]> {
    return this.#calls.collectRows(this.#answeringTargets(), 'top', ask);
  }

  /** Collects the decisions since the previous call from all workers that answer. */
  rates(): Promise<readonly WorkerRows<'rates'>[]> {
    return this.#calls.collectRows(this.#answeringTargets(), 'rates', undefined);
  }

  #answeringSlots(): readonly WorkerSlot[] {
    return this.#slots.filter(({ health, heartbeat }) => health !== undefined && !heartbeat.silent);
  }

  #answeringTargets(): readonly CallableWorker[] {
    return this.#answeringSlots().flatMap(({ callTarget }) => callTarget ?? []);
  }

  /** Returns the workers that can decide best now. */
  #availableWorkers(): readonly CallableWorker[] {
    const started = this.#slots.filter(
      ({ worker, health, heartbeat }) =>
        worker?.isConnected() === true && health !== undefined && !heartbeat.silent,
    );
    const serving = started.filter(({ health }) => health?.reason === undefined);
    const available = serving.length > 0 ? serving : started.filter(({ health }) => health?.storeUp === true);
    // Other workers can at least return the reason.
    return (available.length > 0 ? available : started).flatMap(({ callTarget }) => callTarget ?? []);
  }

  /** Drains all workers. Kills them after `graceMs` and a margin. */
  async drain(why: string, graceMs: number): Promise<void> {
    this.#stopReplacing();
    this.#watchdog.draining();
    this.broadcast({ kind: 'drain', why });
    for (const slot of this.#slots) if (slot.health === undefined) slot.worker?.process.kill('SIGKILL');
    const timer = setTimeout(() => this.#kill(), graceMs + EXIT_MARGIN_MS);
    await this.#ended();
    clearTimeout(timer);
    this.#watchdog.stop();
  }

  /** Kills all workers. */
  async close(): Promise<void> {
    this.#stopReplacing();
    this.#watchdog.stop();
    this.#kill();
    await this.#ended();
  }

  /** Cancels pending replacements, too: a worker that is forked from now on would get neither `start` nor `drain`. */
  #stopReplacing(): void {
    this.#closing = true;
    for (const { retry } of this.#slots) clearTimeout(retry);
  }

  #kill(): void {
    for (const { worker } of this.#slots) worker?.process.kill('SIGKILL');
  }

  async #ended(): Promise<void> {
    for (const { worker } of this.#slots) {
      if (worker !== undefined) await new Promise((resolve) => worker.once('exit', resolve));
    }
  }

  #fork(slot: WorkerSlot): void {
    expectState(slot.worker === undefined && !slot.started, 'a slot has at most one worker at a time');
    const worker = cluster.fork();
    slot.worker = worker;
    slot.startedMs = performance.now();
    const send = (message: ToWorker): void => {
      if (worker.isConnected()) worker.send(message);
    };
    const heartbeat = new Heartbeat({ send: () => send({ kind: 'ping' }) });
    const callTarget = { heartbeat, send };
    slot.heartbeat = heartbeat;
    slot.callTarget = callTarget;
    this.#connections.add(worker, slot);
    worker.on('message', (message: FromWorker) => this.#receive(slot, worker, message));
    worker.once('exit', (code, signal) => {
      this.#onExit(slot, signal ?? `exit code ${code}`);
      this.#calls.lost(callTarget);
    });
    // The channel fails if a worker is killed during a write. The exit event reports the same.
    worker.on('error', () => {});
  }

  #receive(slot: WorkerSlot, worker: Worker, message: FromWorker): void {
    // Messages of a worker may arrive after its exit. Its metrics are already kept by then, and the slot may belong to
    // another worker.
    if (slot.worker !== worker && message.kind !== 'failed') return;
    // Pings that were sent before `ready` are lost.
    this.#noteMessage(slot, message.kind === 'pong' || message.kind === 'ready');
    switch (message.kind) {
      case 'pong':
        this.#connections.workerAnswered(slot);
        return;
      case 'ready':
        expectState(!slot.started, 'a worker becomes ready only once');
        if (!this.#closing) worker.send(this.#options.start());
        slot.started = true;
        return;
      case 'failed':
        if (this.#onStarted === undefined) for (const line of message.lines) this.#options.log.error(line);
        else this.#onStarted(new StartError(message.lines));
        return;
      case 'givenUp':
        // A replacement may start while Redis is unavailable. The other workers keep serving, so only log it.
        if (this.#storeReached) for (const line of message.lines) this.#options.log.error(line);
        else (this.#onStarted ?? this.#options.onGivenUp)(new StartError(message.lines));
        return;
      case 'policies_taken':
        slot.unacknowledgedSlices--;
        expectState(
          slot.unacknowledgedSlices >= 0,
          'a worker acknowledges at most as many slices as it was sent',
        );
        this.#onSliceAcknowledged?.();
        return;
      case 'part':
      case 'answer':
      case 'late':
        this.#calls.received(message);
        return;
      case 'listening':
        this.#grpc = message.grpc;
        expectState(
          slot.started && slot.health === undefined,
          'a worker opens its port only once, after it has started',
        );
        slot.health = message.health;
        this.#watchdog.listening();
        break;
      case 'health':
        // Until the port opens, the `listening` message has the state that counts.
        if (slot.listens) slot.health = message.health;
    }
    this.#storeReached ||= message.health.storeUp;
    if (this.#slots.every(({ health }) => health !== undefined)) this.#onStarted?.();
  }

  #noteMessage(slot: WorkerSlot, answer: boolean): void {
    const { worker, heartbeat } = slot;
    if (slot.listens && heartbeat.silent) {
      const about = { id: worker?.id, pid: worker?.process.pid, silentMs: heartbeat.silentMs };
      this.#options.log.info(about, 'a worker process is responding again and receives new connections');
    }
    heartbeat.onMessage(answer);
  }

  #onSilent(slot: WorkerSlot): void {
    const { worker, heartbeat } = slot;
    const about = { id: worker?.id, pid: worker?.process.pid, silentMs: heartbeat.silentMs };
    this.#options.log.warn(about, 'a worker process does not answer and gets no new connections');
    this.#connections.workerSilent(slot);
    this.#onSliceAcknowledged?.();
  }

  #killSilent(slot: WorkerSlot): void {
    // A start waits for all workers. The program that starts weir, such as systemd, decides how long.
    if (this.#onStarted !== undefined) return;
    slot.killedAfterMs ??= slot.heartbeat.silentMs;
    slot.worker?.process.kill('SIGKILL');
  }

  #onExit(slot: WorkerSlot, how: string): void {
    const silentMs = slot.killedAfterMs;
    if (silentMs !== undefined) this.silentKilled++;
    slot.killedAfterMs = undefined;
    slot.worker = undefined;
    slot.started = false;
    slot.health = undefined;
    slot.unacknowledgedSlices = 0;
    this.#onSliceAcknowledged?.();
    this.#aggregatedMetrics.keep(slot.metrics.metrics);
    this.#aggregatedStats.keep(slot.metrics.stats);
    slot.metrics = new WorkerMetrics();
    this.#onStarted?.(new StartError([`a worker process ended while starting (${how})`]));
    if (this.#closing) return;
    const stable = performance.now() - slot.startedMs >= STABLE_MS;
    if (stable) slot.backOff.reset();
    const pauseMs = slot.backOff.next();
    if (silentMs === undefined) {
      this.#options.log.error({ how, pauseMs }, 'a worker process ended; weir starts a replacement');
    } else {
      const what = 'a worker process did not answer and was killed; weir starts a replacement';
      this.#options.log.error({ how, silentMs, pauseMs }, what);
    }
    slot.retry = setTimeout(() => {
      this.restarts++;
      this.#fork(slot);
    }, pauseMs);
  }

  async #collectAllMetrics(): Promise<void> {
    await Promise.all(this.#answeringSlots().map((slot) => this.#collectMetrics(slot)));
  }

  /** If a worker is too busy or silent, its last known metrics are shown. */
  async #collectMetrics(slot: WorkerSlot): Promise<void> {
    const { callTarget } = slot;
    if (callTarget === undefined) return;
    const told = new WorkerMetrics();
    const answer = await this.#calls.collect(callTarget, 'metrics', undefined, (part) => told.add(part));
    if (answer !== undefined && slot.callTarget === callTarget) slot.metrics = told;
  }
}
