import { HEARTBEAT_INTERVAL_MS, type Heartbeat } from './heartbeat.js';

/** A worker that was silent for this long is replaced, milliseconds. */
export const REPLACE_AFTER_MS = 5000;
/**
 * So long when no other worker answers: what silences all of them is more likely the machine's, and killing them would
 * not help. Milliseconds.
 */
export const REPLACE_ALL_SILENT_AFTER_MS = 15_000;
/**
 * A worker that starts takes over all policies before it listens: 300,000 rules took 4 s of a core. Milliseconds.
 */
export const REPLACE_STARTING_AFTER_MS = 300_000;
/** The next one is not replaced before the last replacement listens, or this long after it; milliseconds. */
const REPLACEMENT_TIMEOUT_MS = 30_000;

/** A worker process, as far as it is needed here. */
export interface WatchedWorker {
  readonly heartbeat: Heartbeat;
  /** Whether its port is open. */
  readonly listens: boolean;
}

export interface WorkerWatchdogOptions<T extends WatchedWorker> {
  /** Those that live. */
  workers(): readonly T[];
  /** It listens, and has become silent. */
  onSilent(worker: T): void;
  /** It is to be killed, which makes room for another. */
  replace(worker: T): void;
}

/** Asks workers whether they are there, and has those replaced that are silent for too long, one at a time. */
export class WorkerWatchdog<T extends WatchedWorker> {
  readonly #options: WorkerWatchdogOptions<T>;
  /** Since one was replaced whose replacement does not listen yet, milliseconds. */
  #replacementMs: number | undefined;
  #draining = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: WorkerWatchdogOptions<T>) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => this.tick(), HEARTBEAT_INTERVAL_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** A worker listens that did not before. */
  listening(): void {
    this.#replacementMs = undefined;
  }

  /** None is replaced from now on: a silent one only holds up the end. */
  draining(): void {
    this.#draining = true;
  }

  /** Every {@link HEARTBEAT_INTERVAL_MS}. */
  tick(): void {
    const workers = this.#options.workers();
    for (const worker of workers) {
      const wasSilent = worker.heartbeat.silent;
      worker.heartbeat.tick();
      if (worker.listens && worker.heartbeat.silent && !wasSilent) this.#options.onSilent(worker);
    }
    if (this.#draining) {
      for (const worker of workers)
        if (worker.heartbeat.silentMs >= REPLACE_AFTER_MS) this.#options.replace(worker);
      return;
    }
    if (this.#replacementMs !== undefined) {
      this.#replacementMs += HEARTBEAT_INTERVAL_MS;
      if (this.#replacementMs < REPLACEMENT_TIMEOUT_MS) return;
    }
    const next = mostSilent(workers.filter((worker) => isDue(worker, workers)));
    if (next === undefined) return;
    this.#replacementMs = 0;
    this.#options.replace(next);
  }
}

function isDue(worker: WatchedWorker, workers: readonly WatchedWorker[]): boolean {
  const { heartbeat, listens } = worker;
  if (!listens) return heartbeat.silentMs >= REPLACE_STARTING_AFTER_MS;
  const anotherAnswers = workers.some((other) => other.listens && !other.heartbeat.silent);
  return heartbeat.silentMs >= (anotherAnswers ? REPLACE_AFTER_MS : REPLACE_ALL_SILENT_AFTER_MS);
}

function mostSilent<T extends WatchedWorker>(workers: readonly T[]): T | undefined {
  let most: T | undefined;
  for (const worker of workers) {
    if (most === undefined || worker.heartbeat.silentMs > most.heartbeat.silentMs) most = worker;
  }
  return most;
}
