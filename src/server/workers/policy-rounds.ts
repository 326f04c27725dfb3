import type { LoadingPolicyProvider, PolicyHandover, XdsUpdate } from '../../config/policy-provider.js';
import type { PlanBytes } from '../../config/read/read-domain.js';
import { withTimeout } from '../../runtime/turns.js';
import type { Logger } from '../../telemetry/logger.js';
import type { ToWorker } from './messages.js';

/** Milliseconds until loaded policies take effect, even if a worker has not loaded them yet. */
export const SWITCH_AFTER_MS = 10_000;
/** Milliseconds between two checks whether all workers have the policies in effect. */
const CHECK_MS = 5000;

const OTHER_POLICIES = 'some worker processes have other policies; weir tells them to load again every 5 s';

/** A worker whose ports are open. */
export interface LoadingWorker {
  readonly id: number;
  /** The latest round of loads that the worker has finished. */
  readonly loadedRound: number;
  readonly policy: string;
}

type RoundPolicies = Pick<LoadingPolicyProvider, 'current' | 'handover' | 'sources'>;

/** The workers of a primary process. */
export interface LoadingWorkers {
  /** Returns the workers whose ports are open. */
  listening(): readonly LoadingWorker[];
  broadcast(message: ToWorker): void;
  /** Sends to each worker. Resolves once all that are not silent have room for more. */
  send(message: ToWorker): Promise<void>;
}

/**
 * Lets all workers load the policies that the primary process has loaded, and lets them take effect in all processes at
 * the same time. A worker that could not load them is told again.
 */
export class PolicyRounds {
  readonly #workers: LoadingWorkers;
  readonly #policies: RoundPolicies;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #switchAfterMs: number;
  #round = 0;
  /** The latest round, which may still run. Rounds run one after the other. */
  #last: Promise<void> = Promise.resolve();
  #isRunning = false;
  #updates: readonly XdsUpdate[] = [];
  #onLoaded = (): void => {};
  /** Rows of tables in Redis that the workers have. */
  #sentRows: ReadonlyMap<string, PlanBytes>;
  /** Workers with other policies at the last check, and those that were logged last, as texts. */
  #differing = '';
  #logged = '';
  readonly #timer: NodeJS.Timeout;

  /** The last parameter is for tests. */
  constructor(
    workers: LoadingWorkers,
    policies: RoundPolicies,
    log: Pick<Logger, 'warn'>,
    { switchAfterMs = SWITCH_AFTER_MS, checkMs = CHECK_MS } = {},
  ) {
    this.#switchAfterMs = switchAfterMs;
    this.#workers = workers;
    this.#policies = policies;
    this.#log = log;
    this.#sentRows = this.#rows();
    this.#timer = setInterval(() => this.#check(), checkMs);
    this.#timer.unref();
  }

  /** Runs a round. Resolves when the policies take effect. `updates`: those that management servers sent. */
  run(updates: readonly XdsUpdate[]): Promise<void> {
    this.#last = this.#last.then(() => this.#runNow(updates));
    return this.#last;
  }

  /**
   * Returns what a worker loads that starts now. It includes the updates of the round that runs, because this worker
   * may have missed their message.
   */
  handover(): PolicyHandover {
    const inEffect = this.#policies.handover();
    const isReplaced = ({ server }: XdsUpdate): boolean =>
      this.#updates.some((update) => update.server === server);
    const others = inEffect.updates.filter((update) => !isReplaced(update));
    return { ...inEffect, updates: [...others, ...this.#updates] };
  }

  /** Notes that a worker has loaded the policies of a round, or has exited. */
  loaded(): void {
    this.#onLoaded();
  }

  /** Returns the workers that have other policies than this process. */
  differing(): readonly LoadingWorker[] {
    const version = this.#policies.current()?.version ?? 'none';
    return this.#workers.listening().filter(({ policy }) => policy !== version);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #runNow(updates: readonly XdsUpdate[]): Promise<void> {
    this.#isRunning = true;
    this.#updates = updates;
    const round = ++this.#round;
    await this.#sendRows();
    const loaded = new Promise<void>((resolve) => {
      this.#onLoaded = () => {
        if (this.#workers.listening().every(({ loadedRound }) => loadedRound >= round)) resolve();
      };
    });
    this.#workers.broadcast({ kind: 'load', round, updates });
    this.#onLoaded();
    await withTimeout(this.#switchAfterMs, loaded, () => {});
    this.#workers.broadcast({ kind: 'switch', round });
    this.#updates = [];
    this.#isRunning = false;
  }

  async #sendRows(): Promise<void> {
    const rows = this.#rows();
    for (const [address, blocks] of rows) {
      if (this.#sentRows.get(address) === blocks) continue;
      for (const [at, bytes] of blocks.entries())
        await this.#workers.send({ kind: 'rows', address, at, bytes });
    }
    this.#sentRows = rows;
  }

  #rows(): ReadonlyMap<string, PlanBytes> {
    return this.#policies.sources?.loadedRows ?? new Map();
  }

  /** Tells workers with other policies to load again, and logs those that have other policies after that, too. */
  #check(): void {
    if (this.#isRunning) return;
    const policy = this.#policies.current()?.version ?? 'none';
    const workers = this.differing().map(({ id, policy }) => ({ id, policy }));
    const differing = workers.length === 0 ? '' : JSON.stringify([policy, workers]);
    // A worker that has just started or loads slowly needs no line.
    if (differing !== '' && differing === this.#differing && differing !== this.#logged) {
      this.#logged = differing;
      this.#log.warn({ policy, workers }, OTHER_POLICIES);
    }
    this.#differing = differing;
    if (differing !== '') void this.run(this.#policies.handover().updates);
  }
}
