import type { Descriptor } from '../../codec/messages.js';
import type { HoldRecord } from '../record/decision-record.js';

/** The settlements of the tokens in one request. */
export interface Settlements {
  /**
   * The descriptors with a token, and the results of the token for logs and traces. If several descriptors have the
   * same token, the first one has its results.
   */
  readonly ends: ReadonlyMap<Descriptor, readonly HoldRecord[]>;
  /** Resolves when stores have answered or failed. Undefined if nothing is awaited. */
  readonly done: Promise<void> | undefined;
}
