import type { HoldRecord } from '../record/decision-record.js';

/** The settlements of the tokens in one request. */
export interface Settlements {
  /**
   * The results of the token for logs and traces, by the index of its descriptor. If several descriptors have the same
   * token, the first one has its results. Undefined for descriptors without a token.
   */
  readonly ends: readonly (readonly HoldRecord[] | undefined)[];
  /** Resolves when stores have answered or failed. Undefined if nothing is awaited. */
  readonly done: Promise<unknown> | undefined;
}
