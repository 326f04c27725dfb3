import type { Worker } from 'node:cluster';
import { BackOff } from '../../runtime/back-off.js';
import type { CallChannel } from './calls.js';
import { Heartbeat } from './heartbeat.js';
import type { WorkerHealth } from './messages.js';
import { NO_METRICS } from './worker-metrics.js';

/** State of one worker. */
export interface WorkerState {
  readonly id: number;
  readonly pid: number;
  /** Undefined until its ports are open. */
  readonly health: WorkerHealth | undefined;
  /** Milliseconds since the worker stopped answering; undefined while it answers. */
  readonly silentMs: number | undefined;
}

/** Milliseconds before a crashed worker is replaced. The pause doubles with each further crash. */
const INITIAL_BACK_OFF_MS = 100;
const MAX_BACK_OFF_MS = 10_000;

/** A slot of the pool, which contains a worker or waits for a replacement. */
export class WorkerSlot {
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

  /** Whether the worker's ports are open. */
  get listens(): boolean {
    return this.health !== undefined;
  }

  /** Forgets the worker, which has exited. */
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
