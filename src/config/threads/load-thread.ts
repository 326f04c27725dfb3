import { constants, setPriority } from 'node:os';
import { parentPort, Worker } from 'node:worker_threads';
import { assetPath } from '../../assets.js';
import { CALENDARS } from '../../limiter/calendar.js';
import { systemClock } from '../../limiter/clock.js';
import { runInTurns, turn } from '../../runtime/turns.js';
import { threadError } from '../../working-directory.js';
import type { InForce, LoadedPolicies } from '../files/load-policies.js';
import { type LoadItem, LoadReceiver } from './load-transfer.js';
import { takesLong } from './policy-transfer.js';
import { cutSlices, openSlice } from './slices.js';
import { YoungGarbage } from './young-garbage.js';

/**
 * Loads policies in a thread of its own; what changed comes back as bytes, and is built here a slice at a time, so that
 * no decision waits for more than a slice. A thread lives for one load: nothing is left of the memory it took, and one
 * that dies takes nothing along.
 */
export class LoadThread {
  private readonly script: string;
  private thread: Worker | undefined;
  private closed = false;

  /** `script` ends with {@link sendLoaded}; named by its path below build/. */
  constructor(script: string) {
    this.script = script;
  }

  /**
   * Hands `request`, plain data, to the script as workerData; what `transfer` names of it is not copied, and is gone
   * from here. `previous` is what the load before gave. Rejects when the load could not be tried. One load at a time.
   */
  async load<Request extends InForce>(
    request: Request,
    previous: LoadedPolicies | undefined,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<LoadedPolicies> {
    const slices = await this.run(request, previous !== undefined, transfer);
    const receiver = new LoadReceiver(previous?.policySet);
    const garbage = new YoungGarbage();
    for (const slice of slices) {
      for (const item of openSlice<LoadItem>(slice)) receiver.add(item);
      garbage.slice();
      await turn();
      if (this.closed) throw new Error('the loader was closed');
    }
    // Or the first requests, or the first ones in new windows, would have to wait for it.
    await runInTurns(CALENDARS.prepare(systemClock.wallMicros()));
    return receiver.finish();
  }

  /** Ends what is running, which then rejects. */
  close(): void {
    this.closed = true;
    void this.thread?.terminate();
  }

  private run(
    request: InForce,
    isReload: boolean,
    transfer: readonly ArrayBuffer[],
  ): Promise<readonly Uint8Array[]> {
    return new Promise((resolve, reject) => {
      const thread = new Worker(assetPath(this.script), {
        name: 'policies',
        workerData: request,
        transferList: [...transfer],
      });
      this.thread = thread;
      // Nobody waits for a reload; a start waits for its first load.
      if (isReload) thread.unref();
      thread.once('message', resolve);
      thread.once('error', (error) => reject(threadError(error)));
      thread.once('exit', (code) => {
        if (this.thread === thread) this.thread = undefined;
        reject(new Error(`the thread that loads policies exited (exit code ${code})`));
      });
    });
  }
}

/**
 * In the thread, first of all: decisions go before it. On Linux a priority is a thread's own (setpriority(2), "C
 * library/kernel differences"); elsewhere it would be the whole process's, so nothing is done there. On two cores a
 * busy server is then held up for half as long (bench: policy-load).
 */
export function giveWay(): void {
  if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
}

/** In the thread: sends what was loaded. */
export function sendLoaded(items: Iterable<LoadItem>): void {
  const slices = [...cutSlices(items, takesLong)];
  parentPort?.postMessage(
    slices,
    slices.map(({ buffer }) => buffer as ArrayBuffer),
  );
}
