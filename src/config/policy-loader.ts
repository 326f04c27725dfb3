import { Worker } from 'node:worker_threads';
import { assetPath } from '../assets.js';
import type { LoadedPolicies, LoadOptions } from './load-policies.js';
import { LoadBuilder, type LoadItem, loadRequest } from './load-transfer.js';
import type { PolicyPlace } from './policy-paths.js';
import { openSlice } from './slices.js';
import { turn } from './turns.js';

/** Loads policies while this thread goes on. */
export interface PolicyLoader {
  /**
   * Loads once; `previous` is what the load before gave, whose policies stay for domains that are bad or did not change. Rejects when it could
   * not be tried; errors in the files are in what it resolves with. One load at a time.
   */
  load(previous?: LoadedPolicies): Promise<LoadedPolicies>;
  /** Ends what is running, which then rejects. */
  close(): void;
}

const THREAD = 'src/config/policy-thread.js';

/**
 * Loads in a thread of its own, which reads, parses and checks; what changed comes back as bytes, and is built here a slice at a time, so that
 * no decision waits for more than a slice. A thread lives for one load: nothing is left of the memory it took, and one that dies takes
 * nothing along.
 */
export class ThreadPolicyLoader implements PolicyLoader {
  private readonly places: readonly PolicyPlace[];
  private readonly options: LoadOptions;
  private thread: Worker | undefined;
  private closed = false;

  constructor(places: readonly PolicyPlace[], options: LoadOptions = {}) {
    this.places = places;
    this.options = options;
  }

  async load(previous?: LoadedPolicies): Promise<LoadedPolicies> {
    const slices = await this.run(previous);
    const builder = new LoadBuilder(previous?.policySet);
    for (const slice of slices) {
      for (const item of openSlice<LoadItem>(slice)) builder.add(item);
      await turn();
      if (this.closed) throw new Error('the loader was closed');
    }
    return builder.finish();
  }

  close(): void {
    this.closed = true;
    void this.thread?.terminate();
  }

  private run(previous: LoadedPolicies | undefined): Promise<readonly Uint8Array[]> {
    return new Promise((resolve, reject) => {
      const thread = new Worker(assetPath(THREAD), {
        name: 'policies',
        workerData: loadRequest(this.places, this.options, previous),
      });
      this.thread = thread;
      // Nobody waits for a reload; a start waits for its first load.
      if (previous !== undefined) thread.unref();
      thread.once('message', resolve);
      thread.once('error', reject);
      thread.once('exit', (code) => {
        if (this.thread === thread) this.thread = undefined;
        reject(new Error(`the thread that loads policies ended (exit code ${code})`));
      });
    });
  }
}
