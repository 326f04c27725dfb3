import type { LoadedPolicies, LoadOptions } from '../files/load-policies.js';
import type { PolicyPlace } from '../files/policy-paths.js';
import { LoadThread } from './load-thread.js';
import { loadRequest } from './load-transfer.js';

/** Loads policies while this thread goes on. */
export interface PolicyLoader {
  /**
   * Loads once; `previous` is what the load before gave, whose policies stay for domains that are bad or did not
   * change. Rejects when it could not be tried; errors in the files are in what it resolves with. One load at a time.
   */
  load(previous?: LoadedPolicies): Promise<LoadedPolicies>;
  /** Ends what is running, which then rejects. */
  close(): void;
}

const THREAD = 'src/config/threads/policy-thread.js';

/** Loads in a thread of its own, which reads, parses and checks; see {@link LoadThread}. */
export class ThreadPolicyLoader implements PolicyLoader {
  private readonly places: readonly PolicyPlace[];
  private readonly options: LoadOptions;
  private readonly thread = new LoadThread(THREAD);

  constructor(places: readonly PolicyPlace[], options: LoadOptions = {}) {
    this.places = places;
    this.options = options;
  }

  load(previous?: LoadedPolicies): Promise<LoadedPolicies> {
    return this.thread.load(loadRequest(this.places, this.options, previous), previous);
  }

  close(): void {
    this.thread.close();
  }
}
