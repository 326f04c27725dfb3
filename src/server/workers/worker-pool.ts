import cluster, { type Worker } from 'node:cluster';
import { BackOff } from '../../back-off.js';
import type { Refusal } from '../../service/refusal.js';
import type { Family } from '../../telemetry/family.js';
import type { ReadSteps } from '../../telemetry/family-registry.js';
import type { Logger } from '../../telemetry/logger.js';
import { StartError } from '../start-error.js';
import type { ViewSlices } from '../views/view-slices.js';
import { AddedMetrics } from './added-metrics.js';
import { sendOver } from './channel.js';
import { ForwardedDecisions } from './forwarded-decisions.js';
import { LatestValues } from './latest-values.js';
import { closeLostConnections } from './lost-connections.js';
import type { FromWorker, OthersRedisWork, RedisWorkTold, ToWorker, WorkerHealth } from './messages.js';
import { WorkerMetrics } from './worker-metrics.js';

export interface WorkerPoolOptions {
  readonly count: number;
  /** The script that workers run: the process's own. */
  readonly entry: string;
  /** Who accepts connections; see docs/operate/workers.md. */
  readonly scheduling: 'round-robin' | 'kernel' | 'reuse-port';
  readonly log: Logger;
  /** Where metrics are added up. */
  readonly slices: ViewSlices;
  /** Told when no worker reached Redis in the time they were given. */
  onGivenUp(error: StartError): void;
  /** Longest that a decision may take, milliseconds (REDIS_TIMEOUT). */
  readonly decisionTimeoutMs: number;
  /** What a worker starts with; asked again for each replacement. */
  start(): Extract<ToWorker, { kind: 'start' }>;
}

/** What is known of one worker. */
export interface WorkerState {
  readonly id: number;
  readonly pid: number;
  /** Undefined until its port is open. */
  readonly health: WorkerHealth | undefined;
}

/** A worker that crashes is replaced after this long, twice as long after each crash that follows; milliseconds. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** A worker that lived this long did not crash because of what the one before it crashed of. */
const STABLE_MS = 10_000;
/** A worker that is too busy to tell its metrics, or the next part of them, is shown as it was last. */
const METRICS_WAIT_MS = 1000;
/** Closing may take this long beside what calls take. */
const EXIT_MARGIN_MS = 5000;

/** Most pools of connections that a worker has, one for each Redis. */
const MAX_POOLS = 2;

/** A question about metrics that a worker has yet to answer. */
interface WaitingMetrics {
  readonly slot: Slot;
  /** A part of the answer came. */
  goesOn(): void;
  done(): void;
}

/** One slot of the pool: a worker, or the pause before its replacement. */
interface Slot {
  worker: Worker | undefined;
  /** Whether the worker got its `start` message; later ones then find it in a state to take them. */
  started: boolean;
  health: WorkerHealth | undefined;
  /** What other workers told and this one is to hear. */
  othersWork: LatestValues<OthersRedisWork> | undefined;
  /** What it told last, and what it tells now. */
  told: WorkerMetrics;
  telling: WorkerMetrics;
  startedMs: number;
  /** Pauses before those that take its place. */
  readonly backOff: BackOff;
  retry: NodeJS.Timeout | undefined;
}

/**
 * Worker processes that share one gRPC port (node:cluster). Keeps their number: one that ends unasked is replaced, with
 * growing pauses while replacements end as well.
 */
export class WorkerPool {
  /** Workers replaced since start. */
  restarts = 0;
  readonly #options: WorkerPoolOptions;
  readonly #slots: Slot[];
  readonly #addedMetrics: AddedMetrics;
  readonly #addedStats: AddedMetrics;
  readonly #decisions: ForwardedDecisions;
  readonly #waitingMetrics = new Map<number, WaitingMetrics>();
  #metricsId = 0;
  #closing = false;
  /** Whether any worker ever reached Redis. */
  #storeReached = false;
  #grpc = '';
  /** Set while starting: ends the start. */
  #onStarted: ((error?: StartError) => void) | undefined;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#addedMetrics = new AddedMetrics(options.slices);
    this.#addedStats = new AddedMetrics(options.slices);
    this.#decisions = new ForwardedDecisions({ longestMs: options.decisionTimeoutMs });
    this.#slots = Array.from({ length: options.count }, () => ({
      worker: undefined,
      started: false,
      health: undefined,
      othersWork: undefined,
      told: new WorkerMetrics(),
      telling: new WorkerMetrics(),
      startedMs: 0,
      backOff: new BackOff({ firstMs: FIRST_PAUSE_MS, longestMs: LONGEST_PAUSE_MS }),
      retry: undefined,
    }));
  }

  /**
   * Starts all workers. Resolves with the address of the gRPC port once it is open in each of them; rejects with
   * {@link StartError}.
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
    });
  }

  /** Workers that are alive. */
  get workers(): readonly WorkerState[] {
    return this.#slots.flatMap(({ worker, health }) =>
      worker === undefined ? [] : [{ id: worker.id, pid: worker.process.pid ?? 0, health }],
    );
  }

  /** Sends to every worker; one that has not started yet gets what `start` says then. */
  broadcast(message: ToWorker): void {
    for (const { worker, started } of this.#slots) {
      if (started && worker?.isConnected() === true) worker.send(message);
    }
  }

  /** Metrics of all processes, `own` included, added up. */
  *metrics(own: readonly Family[]): ReadSteps<readonly Family[]> {
    yield this.#askAllMetrics();
    return yield* this.#addedMetrics.sum([own, ...this.#slots.map(({ told }) => told.metrics)]);
  }

  /** Statistics of all processes, `own` included, added up. */
  *stats(own: readonly Family[]): ReadSteps<readonly Family[]> {
    yield this.#askAllMetrics();
    return yield* this.#addedStats.sum([own, ...this.#slots.map(({ told }) => told.stats)]);
  }

  /** Decides by one of the workers that serve; in a drain none does, and one that has its store is asked. */
  decide(message: Uint8Array, patienceMicros: number, connection: unknown): Promise<Uint8Array | Refusal> {
    const started = this.#slots.filter(
      ({ worker, health }) => worker?.isConnected() === true && health !== undefined,
    );
    const serving = started.filter(({ health }) => health?.reason === undefined);
    const able = serving.length > 0 ? serving : started.filter(({ health }) => health?.storeUp === true);
    // Any other knows at least why it cannot.
    const asked = (able.length > 0 ? able : started).flatMap(({ worker }) => worker ?? []);
    return this.#decisions.ask(asked, message, patienceMicros, connection);
  }

  /** Lets every worker drain and end; after `patienceMs` and a margin they are killed. */
  async drain(why: string, patienceMs: number): Promise<void> {
    this.#replaceNoMore();
    this.broadcast({ kind: 'drain', why });
    for (const slot of this.#slots) if (slot.health === undefined) slot.worker?.process.kill('SIGKILL');
    const timer = setTimeout(() => this.#kill(), patienceMs + EXIT_MARGIN_MS);
    await this.#ended();
    clearTimeout(timer);
  }

  /** Ends every worker at once. */
  async close(): Promise<void> {
    this.#replaceNoMore();
    this.#kill();
    await this.#ended();
  }

  /** Also those whose pause has begun: a worker forked from now on would never be told to start, nor to end. */
  #replaceNoMore(): void {
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

  #fork(slot: Slot): void {
    const worker = cluster.fork();
    slot.worker = worker;
    slot.othersWork = new LatestValues((told) =>
      sendOver(worker.process, { kind: 'others_redis_work', told }),
    );
    slot.startedMs = performance.now();
    closeLostConnections(worker);
    worker.on('message', (message: FromWorker) => this.#receive(slot, worker, message));
    worker.once('exit', (code, signal) => {
      this.#decisions.lost(worker);
      this.#onExit(slot, signal ?? `exit code ${code}`);
    });
    // The channel breaks when a worker is killed while it is written to; its exit says the same.
    worker.on('error', () => {});
  }

  #receive(slot: Slot, worker: Worker, message: FromWorker): void {
    // What a worker said last may be read after its end is known: its numbers are kept by then, and the slot is
    // another's.
    if (slot.worker !== worker && message.kind !== 'failed') return;
    switch (message.kind) {
      case 'ready':
        if (!this.#closing) worker.send(this.#options.start());
        slot.started = true;
        return;
      case 'failed':
        if (this.#onStarted === undefined) for (const line of message.lines) this.#options.log.error(line);
        else this.#onStarted(new StartError(message.lines));
        return;
      case 'givenUp':
        // One that takes the place of another may have come while Redis is away, which the others know to live with.
        if (this.#storeReached) for (const line of message.lines) this.#options.log.error(line);
        else (this.#onStarted ?? this.#options.onGivenUp)(new StartError(message.lines));
        return;
      case 'metrics_part':
        slot.telling.add(message);
        for (const waiting of this.#waitingMetrics.values()) if (waiting.slot === slot) waiting.goesOn();
        return;
      case 'metrics_end':
        slot.told = slot.telling;
        slot.telling = new WorkerMetrics();
        for (const [id, waiting] of this.#waitingMetrics) {
          if (waiting.slot === slot && id <= message.id) waiting.done();
        }
        return;
      case 'decided':
        this.#decisions.answered(message);
        return;
      case 'redis_work':
        this.#tellOthers(slot, message.told);
        return;
      case 'listening':
        this.#grpc = message.grpc;
        slot.health = message.health;
        break;
      case 'health':
        slot.health = message.health;
    }
    this.#storeReached ||= message.health.storeUp;
    if (this.#slots.every(({ health }) => health !== undefined)) this.#onStarted?.();
  }

  /** All workers share what Redis does; see {@link Store.onWork}. */
  #tellOthers(slot: Slot, told: readonly RedisWorkTold[]): void {
    const from = this.#slots.indexOf(slot);
    for (const other of this.#slots) {
      if (other === slot || !other.started) continue;
      for (const work of told) other.othersWork?.put(from * MAX_POOLS + work.pool, { from, ...work });
    }
  }

  #onExit(slot: Slot, how: string): void {
    slot.worker = undefined;
    slot.started = false;
    slot.health = undefined;
    void this.#addedMetrics.keep(slot.told.metrics);
    void this.#addedStats.keep(slot.told.stats);
    slot.told = new WorkerMetrics();
    slot.telling = new WorkerMetrics();
    if (this.#onStarted !== undefined) {
      this.#onStarted(new StartError([`a worker process ended while starting (${how})`]));
    }
    if (this.#closing) return;
    const stable = performance.now() - slot.startedMs >= STABLE_MS;
    if (stable) slot.backOff.reset();
    const pauseMs = slot.backOff.next();
    this.#options.log.error({ how, pauseMs }, 'a worker process ended; another takes its place');
    slot.retry = setTimeout(() => {
      this.restarts++;
      this.#fork(slot);
    }, pauseMs);
  }

  async #askAllMetrics(): Promise<void> {
    const asked = this.#slots.filter(({ health }) => health !== undefined);
    await Promise.all(asked.map((slot) => this.#askMetrics(slot)));
  }

  #askMetrics(slot: Slot): Promise<void> {
    const id = ++this.#metricsId;
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        slot.worker?.off('exit', done);
        this.#waitingMetrics.delete(id);
        resolve();
      };
      const timer = setTimeout(done, METRICS_WAIT_MS);
      this.#waitingMetrics.set(id, { slot, done, goesOn: () => timer.refresh() });
      slot.worker?.once('exit', done);
      slot.worker?.send({ kind: 'metrics', id } satisfies ToWorker);
    });
  }
}
