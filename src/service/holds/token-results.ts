import type { HoldRecord } from '../record/decision-record.js';

/** The settlements for the tokens in one request. */
export interface TokenResults {
  /**
   * The results of settling each token, for logs and traces, by the index of the descriptor. If several descriptors
   * have the same token, only the first one has the results. Undefined for descriptors without a token.
   */
  readonly ends: readonly (readonly HoldRecord[] | undefined)[];
  /** Resolves when all stores have answered or failed. Undefined if there is nothing to wait for. */
  readonly done: Promise<unknown> | undefined;
}
