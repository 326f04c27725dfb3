import {
  type InEffect,
  inEffectOf,
  type LoadedPolicies,
  type LoadOptions,
  type PreviousPolicies,
} from '../files/load-policies.js';
import type { PolicyPlace } from '../files/policy-paths.js';
import { LoadThread } from './load-thread.js';

/** Loads policies while this thread continues. */
export interface PolicyLoader {
  /**
   * Loads the policies once. `previous` is the result of the previous load, whose policies stay for invalid or
   * unchanged domains. Rejects if the load could not run. Errors in the files are part of the result. Only one load may
   * run at a time.
   */
  load(previous?: PreviousPolicies): Promise<LoadedPolicies>;
  /** Cancels the running load, which then rejects. */
  close(): void;
}

/** Request to the thread, as plain data. */
export interface LoadRequest {
  readonly places: readonly PolicyPlace[];
  readonly options: LoadOptions;
  readonly before: InEffect;
}

/** Reads, parses and checks policies in a worker thread; see {@link LoadThread}. */
export class ThreadPolicyLoader implements PolicyLoader {
  private readonly places: readonly PolicyPlace[];
  private readonly options: LoadOptions;
  private readonly rows: () => LoadOptions['rows'];
  private readonly thread = new LoadThread<LoadRequest>('src/config/threads/policy-thread.js');

  /** `rows` returns {@link LoadOptions.rows} for the next load. */
  constructor(
    places: readonly PolicyPlace[],
    options: LoadOptions = {},
    rows: () => LoadOptions['rows'] = () => undefined,
  ) {
    this.places = places;
    this.options = options;
    this.rows = rows;
  }

  load(previous?: PreviousPolicies): Promise<LoadedPolicies> {
    const rows = this.rows();
    const options = rows === undefined ? this.options : { ...this.options, rows };
    return this.thread.load({ places: this.places, options, before: inEffectOf(previous) }, previous);
  }

  close(): void {
    this.thread.close();
  }
}
