import type { StorageError } from '../../../limiter/bucket-store.js';

/** A call of a script of its own, beside those that decide on takes. */
export interface ScriptRequest {
  readonly script: string;
  /** The only key that it reads or writes, with prefix. */
  readonly key: string;
  /** What follows in ARGV after the time, which is as in take.lua: '' if the script is to read the clock of Redis. */
  readonly args: readonly string[];
  /** Most bytes of the answer, which is one text. */
  readonly textBytes: number;
  /** Whether it waits, as takes do, while the server may be up in a moment though it is not. */
  readonly mayWait?: boolean;
}

/**
 * What a script answered, or why it did not. With the reason `timeout` nobody knows whether it has done its work; with
 * any other it has not.
 */
export type ScriptReply = string | StorageError;
