import type { StorageError } from '../../../limiter/bucket-store.js';

/** A script call that is not a take. Its reply is one text. */
export interface ScriptRequest {
  readonly script: string;
  /** The only key that it reads or writes, with its prefix. */
  readonly key: string;
  /** Arguments after the time, which is the same as in take.lua: '' if the script must read the clock of Redis. */
  readonly args: readonly string[];
}

/**
 * Reply of a script, or its failure. After a failure with the reason `timeout`, the script may have run; after any
 * other failure, it has not.
 */
export type ScriptReply = string | StorageError;
