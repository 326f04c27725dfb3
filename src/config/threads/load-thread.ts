import { parentPort, Worker } from 'node:worker_threads';
import { assetPath } from '../../assets.js';
import { CALENDARS } from '../../limiter/calendar.js';
import { systemClock } from '../../limiter/clock.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import { runInTurns, turn } from '../../runtime/turns.js';
import type { InEffect, LoadedPolicies, ReadPolicies } from '../files/load-policies.js';
import { type LoadItem, LoadReceiver, loadItems } from './load-transfer.js';
import { MinorCollector } from './minor-collector.js';
import { needsOwnSlice } from './policy-transfer.js';
import { cutSlices, openSlice } from './slices.js';
import { messageOf } from './thread-message.js';

/**
 * Loads policies in a worker thread. The result is sent as bytes and built here slice by slice, so that no decision
 * waits longer than one slice takes. Each load has its own thread, so its memory is freed afterwards and a crash
 * affects only the load.
 */
export class LoadThread {
  private readonly script: string;
  private thread: Worker | undefined;
  private closed = false;

  /** `script` is the path of the thread's script below build/. It ends with {@link sendLoaded}. */
  constructor(script: string) {
    this.script = script;
  }

  /**
   * Passes `request`, plain data, to the script as workerData. Objects in `transfer` are moved instead of copied, and
   * are unusable here afterwards. `previous` is the result of the previous load. Rejects if the load could not run.
   * Only one load may run at a time.
   */
  async load<Request extends InEffect>(
    request: Request,
    previous: LoadedPolicies | undefined,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<LoadedPolicies> {
    const { slices, tables } = await this.run(request, previous !== undefined, transfer);
    const receiver = new LoadReceiver(previous?.policySet, tables);
    const garbage = new MinorCollector();
    for (const slice of slices) {
      for (const item of openSlice<LoadItem>(slice)) receiver.add(item);
      garbage.slice();
      await turn();
      if (this.closed) throw new Error('the loader was closed');
    }
    // Prepare the time zones now, so that neither the first requests nor the first requests of new windows wait for it.
    await runInTurns(CALENDARS.prepare(systemClock.wallMicros()));
    return receiver.finish();
  }

  /** Cancels the running load, which then rejects. */
  close(): void {
    this.closed = true;
    void this.thread?.terminate();
  }

  private run(request: InEffect, isReload: boolean, transfer: readonly ArrayBuffer[]): Promise<SentLoad> {
    const thread = new Worker(assetPath(this.script), {
      name: 'policies',
      workerData: request,
      transferList: [...transfer],
    });
    this.thread = thread;
    // A reload must not keep the process running, but the first load must.
    if (isReload) thread.unref();
    return messageOf<SentLoad>(thread, 'loads policies').finally(() => {
      this.thread = undefined;
    });
  }
}

/** The message of the thread: its result in slices, and tables of plans in shared memory. */
interface SentLoad {
  readonly slices: readonly Uint8Array[];
  readonly tables: readonly PlanTable[];
}

/** Sends the result of the load. Runs in the thread. */
export function sendLoaded(read: ReadPolicies): void {
  const tables: PlanTable[] = [];
  const slices = [...cutSlices(loadItems(read, tables), needsOwnSlice)];
  parentPort?.postMessage(
    { slices, tables } satisfies SentLoad,
    slices.map(({ buffer }) => buffer as ArrayBuffer),
  );
}
