import { type InEffect, inEffectOf, type LoadedPolicies, type LoadOptions } from '../files/load-policies.js';
import { LoadThread } from '../threads/load-thread.js';
import type { DiscoveryResponse } from './discovery.js';

/** Input of the thread, as plain data. */
export interface UpdateRequest {
  readonly response: DiscoveryResponse;
  /** Digest of the last rejected response. */
  readonly rejected: string | undefined;
  readonly options: LoadOptions;
  readonly before: InEffect;
}

/** Loads updates in a worker thread while this thread continues; see {@link LoadThread} and readUpdate. */
export class UpdateLoader {
  readonly #options: LoadOptions;
  readonly #thread = new LoadThread<UpdateRequest>('src/config/xds/update-thread.js');

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /**
   * Loads a response once. A response with the digest `rejected` is not loaded, see readResponse. `previous` is the
   * result of the last valid update, whose policies stay for unchanged domains. Rejects if the load could not run.
   * Errors in the resources are part of the result. Only one load may run at a time.
   */
  load(
    response: DiscoveryResponse,
    previous: LoadedPolicies | undefined,
    rejected?: string,
  ): Promise<LoadedPolicies> {
    const before = inEffectOf(previous);
    return this.#thread.load({ response, rejected, options: this.#options, before }, previous);
  }

  /** Cancels the running load, which then rejects. */
  close(): void {
    this.#thread.close();
  }
}
