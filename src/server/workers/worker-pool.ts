import cluster, { type Worker } from 'node:cluster';
import { checkInvariant } from '../../runtime/invariant.js';
import { BackOff } from '../../runtime/timers.js';
import type { Family } from '../../telemetry/family-registry.js';
import type { Logger } from '../../telemetry/logger.js';
import type { ServingAddresses } from '../server-core.js';
import { StartError } from '../start-error.js';
import { AggregatedMetrics, NO_METRICS, receivedMetrics } from './aggregated-metrics.js';
import {
  type Answer,
  CallChannel,
  type Calls,
  type FromWorker,
  type MetricsPart,
  type SharedText,
  type ToWorker,
  type WorkerHealth,
} from './messages.js';
import type { LoadingWorker } from './policy-rounds.js';
import { ConnectionGuard, HEARTBEAT_INTERVAL_MS, Heartbeat } from './worker-watchdog.js';

/** Milliseconds before a crashed worker is replaced. The pause doubles with each further crash. */
const INITIAL_BACK_OFF_MS = 100;
const MAX_BACK_OFF_MS = 10_000;

/** A slot of the pool, which contains a worker or waits for a replacement. */
export class WorkerSlot implements LoadingWorker {
  worker: Worker | undefined;
  /** Whether the worker got its `start` message, so that it can process others. */
  started = false;
  health: WorkerHealth | undefined;
  heartbeat = new Heartbeat(() => {});
  /** Milliseconds of silence for which the worker was killed. */
  killedAfterMs: number | undefined;
  channel: CallChannel | undefined;
  /** The latest round of policies that the worker has loaded. */
  loadedRound = 0;
  /** Whether the worker has finished its calls during a drain. */
  hasDrained = false;
  /** Last known metrics. */
  metrics = NO_METRICS;
  startedMs = 0;
  /** Pauses before replacements. */
  readonly backOff = new BackOff({ initialMs: INITIAL_BACK_OFF_MS, maxMs: MAX_BACK_OFF_MS });
  retry: NodeJS.Timeout | undefined;

  get id(): number {
    return this.worker?.id ?? 0;
  }

  get pid(): number {
    return this.worker?.process.pid ?? 0;
  }

  get policy(): string {
    return this.health?.policy ?? 'none';
  }

  /** Whether the worker's ports are open. */
  get listens(): boolean {
    return this.health !== undefined;
  }

  /** Milliseconds since the worker stopped answering; undefined while it answers. */
  get silentMs(): number | undefined {
    return this.heartbeat.silent ? this.heartbeat.silentMs : undefined;
  }

  clear(): void {
    this.worker = undefined;
    this.started = false;
    this.health = undefined;
    this.killedAfterMs = undefined;
    this.channel = undefined;
    this.loadedRound = 0;
    this.metrics = NO_METRICS;
  }
}

export interface WorkerPoolOptions {
  readonly count: number;
  /** Script that workers run; the same as for this process. */
  readonly entry: string;
  /** Distribution of connections; see docs/operate/workers.md. */
  readonly scheduling: 'round-robin' | 'kernel' | 'reuse-port';
  readonly log: Logger;
  /** Called if no worker reached Redis in time. */
  onGivenUp(error: StartError): void;
  /** Called for each replacement, too. */
  start(): Extract<ToWorker, { kind: 'start' }>;
  /** Returns a text about all processes, for the HTTP port of a worker. */
  text(of: SharedText): Promise<Uint8Array>;
  /** Called when the state of a worker may have changed. */
  onChange(): void;
}

/** Milliseconds after which a crash is not related to the previous one, so that the back-off restarts. */
const STABLE_MS = 10_000;
/** Milliseconds that workers get to close, in addition to the time for running calls. */
const EXIT_MARGIN_MS = 5000;

/**
 * Runs workers that share their ports (node:cluster). A worker that exits unexpectedly or is silent for too long is
 * replaced, with growing pauses while replacements exit as well.
 */
export class WorkerPool {
  /** Number of replaced workers since the start. */
  restarts = 0;
  /** Number of workers that were killed because they were silent. */
  silentKilled = 0;
  readonly #options: WorkerPoolOptions;
  readonly #slots: WorkerSlot[];
  readonly #aggregated = { metrics: new AggregatedMetrics(), stats: new AggregatedMetrics() };
  #watchdog: NodeJS.Timeout | undefined;
  #closing = false;
  #isDraining = false;
  /** Whether any worker ever reached Redis. */
  #storeReached = false;
  #addresses: ServingAddresses | undefined;
  /** Ends the start; undefined afterwards. */
  #onStarted: ((error?: StartError) => void) | undefined;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#slots = Array.from({ length: options.count }, () => new WorkerSlot());
  }

  /**
   * Starts all workers. Resolves with the addresses of their ports once they are open in each worker. Rejects with
   * {@link StartError}.
   */
  start(): Promise<ServingAddresses> {
    cluster.schedulingPolicy = this.#options.scheduling === 'kernel' ? cluster.SCHED_NONE : cluster.SCHED_RR;
    cluster.setupPrimary({ exec: this.#options.entry, args: ['serve'], serialization: 'advanced' });
    return new Promise((resolve, reject) => {
      this.#onStarted = (error) => {
        this.#onStarted = undefined;
        if (error === undefined) resolve(this.#addresses as ServingAddresses);
        else reject(error);
      };
      for (const slot of this.#slots) this.#fork(slot);
      this.#watchdog = setInterval(() => this.#checkWorkers(), HEARTBEAT_INTERVAL_MS);
    });
  }

  /** Slots with a running worker. */
  get workers(): readonly WorkerSlot[] {
    return this.#slots.filter(({ worker }) => worker !== undefined);
  }

  /** Workers whose ports are open. */
  listening(): readonly WorkerSlot[] {
    return this.#slots.filter(({ listens }) => listens);
  }

  /** Sends to each worker that has started. A worker that starts later gets the current state with `start`. */
  broadcast(message: ToWorker): void {
    for (const { started, worker } of this.#slots) if (started && worker?.isConnected()) worker.send(message);
  }

  /** Sends to each worker that has started. Resolves once the message is in the channels of those that answer. */
  async send(message: ToWorker): Promise<void> {
    const sent = this.#slots.flatMap(({ started, worker, heartbeat }) => {
      if (!started || worker === undefined) return [];
      const done = sendTo(worker, message);
      return heartbeat.silent ? [] : done;
    });
    await Promise.all(sent);
  }

  /** Returns the sum of the metrics or statistics of all processes, including `own`. */
  async sums(of: MetricsPart['of'], own: readonly Family[]): Promise<readonly Family[]> {
    await this.#collectMetrics();
    return this.#aggregated[of].sum([own, ...this.#slots.map(({ metrics }) => metrics[of])]);
  }

  /** Asks all workers that answer. Workers that do not answer in time are left out. */
  async collect<Name extends 'top' | 'rates'>(
    name: Name,
    question: Calls[Name]['question'],
  ): Promise<readonly Answer<Name>[]> {
    const told = await Promise.all(this.#answering().map(({ channel }) => channel?.ask(name, question)));
    return told.filter((answer) => answer !== undefined);
  }

  /**
   * Drains all workers. Kills them after `graceMs` and a margin. A worker that has finished its calls refuses further
   * ones until the others have finished theirs.
   */
  async drain(why: string, graceMs: number): Promise<void> {
    this.#stopReplacing();
    this.#isDraining = true;
    this.broadcast({ kind: 'drain', why });
    for (const slot of this.#slots) if (slot.health === undefined) slot.worker?.process.kill('SIGKILL');
    const timer = setTimeout(() => this.#kill(), graceMs + EXIT_MARGIN_MS);
    await this.#ended();
    clearTimeout(timer);
    clearInterval(this.#watchdog);
  }

  async close(): Promise<void> {
    this.#stopReplacing();
    clearInterval(this.#watchdog);
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

  #answering(): readonly WorkerSlot[] {
    return this.listening().filter(({ silentMs }) => silentMs === undefined);
  }

  #fork(slot: WorkerSlot): void {
    checkInvariant(slot.worker === undefined && !slot.started, 'a slot has at most one worker at a time');
    slot.startedMs = performance.now();
    const worker = forkWorker((why) => this.#onExit(slot, why));
    if (worker === undefined) return;
    const heartbeat = new Heartbeat(() => void sendTo(worker, { kind: 'ping' }));
    const channel = new CallChannel((message) => sendTo(worker, message), {
      text: async (of) => ({ about: await this.#options.text(of) }),
    });
    const guard = new ConnectionGuard(worker.process, heartbeat);
    Object.assign(slot, { worker, heartbeat, channel });
    worker.on('message', (message: FromWorker) => {
      // Messages of a worker may arrive after its exit. Its metrics are already kept by then, and the slot may belong
      // to another worker.
      if (slot.worker !== worker && message.kind !== 'failed') return;
      // Pings that were sent before `ready` are lost.
      this.#noteMessage(slot, message.kind === 'pong' || message.kind === 'ready');
      if (message.kind === 'pong') guard.answered();
      else this.#receive(slot, worker, message);
    });
    worker.once('exit', (code, signal) => {
      this.#onExit(slot, signal ?? `exit code ${code}`);
      channel.close();
    });
    worker.once('disconnect', () => guard.ended());
    // The channel fails if a worker is killed during a write. The exit event reports the same.
    worker.on('error', () => {});
  }

  #receive(slot: WorkerSlot, worker: Worker, message: Exclude<FromWorker, { kind: 'pong' }>): void {
    switch (message.kind) {
      case 'ready':
        checkInvariant(!slot.started, 'a worker becomes ready only once');
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
      case 'loaded':
        slot.loadedRound = message.round;
        break;
      case 'drained':
        slot.hasDrained = true;
        this.#endDrained();
        return;
      case 'listening':
        this.#addresses = message.addresses;
        checkInvariant(
          slot.started && slot.health === undefined,
          'a worker opens its ports only once, after it has started',
        );
        this.#setHealth(slot, message.health);
        if (this.#slots.every(({ listens }) => listens)) this.#onStarted?.();
        break;
      case 'health':
        // Until the ports open, the `listening` message has the state that counts.
        if (slot.listens) this.#setHealth(slot, message.health);
        break;
      default:
        slot.channel?.receive(message).catch((err) => this.#options.log.error({ err }, 'unexpected error'));
        return;
    }
    this.#options.onChange();
  }

  #endDrained(): void {
    const hasEnded = this.#slots.every(({ worker, hasDrained }) => worker === undefined || hasDrained);
    if (this.#isDraining && hasEnded) this.broadcast({ kind: 'end' });
  }

  #setHealth(slot: WorkerSlot, health: WorkerSlot['health']): void {
    slot.health = health;
    this.#storeReached ||= health?.storeUp === true;
  }

  #noteMessage(slot: WorkerSlot, answer: boolean): void {
    const { worker, silentMs } = slot;
    slot.heartbeat.onMessage(answer);
    if (!slot.listens || silentMs === undefined) return;
    const about = { ...nameOf(worker), silentMs };
    this.#options.log.info(about, 'a worker process is responding again and receives new connections');
    this.#options.onChange();
  }

  /** Pings the workers, and kills those that were silent for too long, so that others replace them. */
  #checkWorkers(): void {
    for (const slot of this.workers) {
      const { heartbeat, listens } = slot;
      const wasSilent = heartbeat.silent;
      heartbeat.tick();
      const { silentMs } = heartbeat;
      if (listens && heartbeat.silent && !wasSilent) {
        const about = { ...nameOf(slot.worker), silentMs };
        this.#options.log.warn(about, 'a worker process does not answer and gets no new connections');
        this.#options.onChange();
      }
      // A start waits for all workers. The program that starts weir, such as systemd, decides how long.
      if (this.#onStarted !== undefined || !heartbeat.isLost(listens)) continue;
      slot.killedAfterMs ??= silentMs;
      slot.worker?.process.kill('SIGKILL');
    }
  }

  #onExit(slot: WorkerSlot, how: string): void {
    const silentMs = slot.killedAfterMs;
    if (silentMs !== undefined) this.silentKilled++;
    for (const of of ['metrics', 'stats'] as const) this.#aggregated[of].keep(slot.metrics[of]);
    const { backOff, startedMs } = slot;
    const name = nameOf(slot.worker);
    slot.clear();
    this.#options.onChange();
    this.#endDrained();
    this.#onStarted?.(new StartError([`a worker process ended while starting (${how})`]));
    if (this.#closing) return;
    if (performance.now() - startedMs >= STABLE_MS) backOff.reset();
    const pauseMs = backOff.next();
    if (silentMs === undefined) {
      this.#options.log.error({ ...name, how, pauseMs }, 'a worker process ended; weir starts a replacement');
    } else {
      const what = 'a worker process did not answer and was killed; weir starts a replacement';
      this.#options.log.error({ ...name, how, silentMs, pauseMs }, what);
    }
    slot.retry = setTimeout(() => {
      this.restarts++;
      this.#fork(slot);
    }, pauseMs);
  }

  async #collectMetrics(): Promise<void> {
    await Promise.all(
      this.#answering().map(async (slot) => {
        const { channel } = slot;
        const answer = await channel?.ask('metrics', undefined);
        // If a worker is too busy, its last known metrics are shown.
        if (answer !== undefined && slot.channel === channel) slot.metrics = receivedMetrics(answer.rows);
      }),
    );
  }
}

/**
 * Starts a process. Returns undefined if the system cannot create one, for example because no file descriptor is free,
 * and then calls `failed` with the reason.
 */
function forkWorker(failed: (why: string) => void): Worker | undefined {
  try {
    const worker = cluster.fork();
    if (worker.process.pid !== undefined) return worker;
    // Node.js reports an error, but no exit. The process may lack a channel, too.
    worker.once('error', (error: Error) => failed(error.message));
  } catch (error) {
    setImmediate(() => failed((error as Error).message));
  }
  return undefined;
}

/** Sends a message. Resolves once it is in the channel, or if the worker has exited. */
function sendTo(worker: Worker, message: ToWorker): Promise<void> {
  return new Promise((resolve) => {
    if (worker.isConnected()) worker.process.send?.(message, () => resolve());
    else resolve();
  });
}

/** Returns the fields that name a worker in the log. Lines that a worker writes have the first of them, too. */
function nameOf(worker: Worker | undefined): { worker: number | undefined; pid: number | undefined } {
  return { worker: worker?.id, pid: worker?.process.pid };
}
