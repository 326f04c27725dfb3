import { ASKED_EVERY_MS, type Pulse } from './heartbeat.js';

/** A worker that was silent for this long is replaced, milliseconds. */
export const REPLACED_MS = 5000;
/**
 * So long when no other worker answers: what silences all of them is more likely the machine's, and killing them would
 * not help. Milliseconds.
 */
export const ALL_SILENT_MS = 15_000;
/**
 * A worker that starts takes over all policies before it listens: 300,000 rules took 4 s of a core. Milliseconds.
 */
export const STARTING_MS = 300_000;
/** The next one is not replaced before the last replacement listens, or this long after it; milliseconds. */
const ONE_AT_A_TIME_MS = 30_000;

/** A worker process, as far as it is needed here. */
export interface WatchedWorker {
  readonly pulse: Pulse;
  /** Whether its port is open. */
  readonly listens: boolean;
}

export interface WorkerWatchOptions<T extends WatchedWorker> {
  /** Those that live. */
  workers(): readonly T[];
  /** It listens, and has become silent. */
  onSilent(worker: T): void;
  /** It is to be killed, which makes room for another. */
  replace(worker: T): void;
}

/** Asks workers whether they are there, and has those replaced that are silent for too long, one at a time. */
export class WorkerWatch<T extends WatchedWorker> {
  readonly #options: WorkerWatchOptions<T>;
  /** Since one was replaced whose replacement does not listen yet, milliseconds. */
  #replacingMs: number | undefined;
  #draining = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: WorkerWatchOptions<T>) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => this.tick(), ASKED_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** A worker listens that did not before. */
  listening(): void {
    this.#replacingMs = undefined;
  }

  /** None is replaced from now on: a silent one only holds up the end. */
  draining(): void {
    this.#draining = true;
  }

  /** Every {@link ASKED_EVERY_MS}. */
  tick(): void {
    const workers = this.#options.workers();
    for (const worker of workers) {
      const wasSilent = worker.pulse.silent;
      worker.pulse.tick();
      if (worker.listens && worker.pulse.silent && !wasSilent) this.#options.onSilent(worker);
    }
    if (this.#draining) {
      for (const worker of workers) if (worker.pulse.silentMs >= REPLACED_MS) this.#options.replace(worker);
      return;
    }
    if (this.#replacingMs !== undefined) {
      this.#replacingMs += ASKED_EVERY_MS;
      if (this.#replacingMs < ONE_AT_A_TIME_MS) return;
    }
    const next = mostSilent(workers.filter((worker) => isDue(worker, workers)));
    if (next === undefined) return;
    this.#replacingMs = 0;
    this.#options.replace(next);
  }
}

function isDue(worker: WatchedWorker, workers: readonly WatchedWorker[]): boolean {
  const { pulse, listens } = worker;
  if (!listens) return pulse.silentMs >= STARTING_MS;
  const anotherAnswers = workers.some((other) => other.listens && !other.pulse.silent);
  return pulse.silentMs >= (anotherAnswers ? REPLACED_MS : ALL_SILENT_MS);
}

function mostSilent<T extends WatchedWorker>(workers: readonly T[]): T | undefined {
  let most: T | undefined;
  for (const worker of workers) {
    if (most === undefined || worker.pulse.silentMs > most.pulse.silentMs) most = worker;
  }
  return most;
}
