import type { Worker } from 'node:cluster';
import { BackOff } from '../../runtime/back-off.js';
import type { CallableWorker } from './call-client.js';
import { Heartbeat } from './heartbeat.js';
import type { LatestValueSender } from './latest-value-sender.js';
import type { OthersRedisWork, WorkerHealth } from './messages.js';
import { WorkerMetrics } from './worker-metrics.js';

/** What is known of one worker. */
export interface WorkerState {
  readonly id: number;
  readonly pid: number;
  /** Undefined until its port is open. */
  readonly health: WorkerHealth | undefined;
  /** How long it has not answered, milliseconds; undefined while it does. */
  readonly silentMs: number | undefined;
}

/** A worker that crashes is replaced after this long, twice as long after each crash that follows; milliseconds. */
const INITIAL_BACK_OFF_MS = 100;
const MAX_BACK_OFF_MS = 10_000;

/** One slot of the pool: a worker, or the pause before its replacement. */
export interface WorkerSlot {
  worker: Worker | undefined;
  /** Whether the worker got its `start` message; later ones then find it in a state to take them. */
  started: boolean;
  health: WorkerHealth | undefined;
  /** Whether its port is open. */
  readonly listens: boolean;
  heartbeat: Heartbeat;
  /** How long it was silent, milliseconds, when it was killed for that. */
  killedAfterMs: number | undefined;
  callTarget: CallableWorker | undefined;
  /** Slices of policies that it was sent and has not taken yet. */
  unacknowledgedSlices: number;
  /** What other workers told and this one is to hear. */
  othersWork: LatestValueSender<OthersRedisWork> | undefined;
  /** What it told of its metrics last. */
  metrics: WorkerMetrics;
  startedMs: number;
  /** Pauses before those that take its place. */
  readonly backOff: BackOff;
  retry: NodeJS.Timeout | undefined;
}

/** A slot whose worker is yet to be forked. */
export function emptySlot(): WorkerSlot {
  return {
    worker: undefined,
    started: false,
    health: undefined,
    get listens() {
      return this.health !== undefined;
    },
    heartbeat: new Heartbeat({ send() {} }),
    killedAfterMs: undefined,
    callTarget: undefined,
    unacknowledgedSlices: 0,
    othersWork: undefined,
    metrics: new WorkerMetrics(),
    startedMs: 0,
    backOff: new BackOff({ initialMs: INITIAL_BACK_OFF_MS, maxMs: MAX_BACK_OFF_MS }),
    retry: undefined,
  };
}
