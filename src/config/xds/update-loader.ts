import type { LoadedPolicies, LoadOptions } from '../load-policies.js';
import { LoadThread } from '../load-thread.js';
import { type InForce, inForceOf } from '../load-transfer.js';
import type { Resource } from './discovery.js';

/** What the thread is asked to load, as plain data. */
export interface UpdateRequest extends InForce {
  readonly resources: readonly Resource[];
  readonly options: LoadOptions;
}

/** Loads updates while this thread goes on; see {@link LoadThread} and loadUpdate. */
export class UpdateLoader {
  readonly #options: LoadOptions;
  readonly #thread = new LoadThread('src/config/xds/update-thread.js');

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /**
   * Loads once; `previous` is what the last good update gave, whose policies stay for domains that did not change. Rejects when it could not be
   * tried; errors in the resources are in what it resolves with. One load at a time.
   */
  load(resources: readonly Resource[], previous: LoadedPolicies | undefined): Promise<LoadedPolicies> {
    return this.#thread.load({ resources, options: this.#options, ...inForceOf(previous) }, previous);
  }

  /** Ends what is running, which then rejects. */
  close(): void {
    this.#thread.close();
  }
}
