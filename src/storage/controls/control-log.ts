import { randomBytes } from 'node:crypto';
import { StorageError } from '../../limiter/bucket-store.js';
import { MAX_CONTROLS } from '../../limiter/control.js';
import type { RedisBuckets } from '../redis/redis-buckets.js';
import { DEFAULT_KEY_PREFIX } from '../redis/redis-key.js';
import { scriptText } from '../redis/script-requests/script-text.js';
import { type ControlsPolled, readChanged, readPolled } from './control-rows.js';

/** Maximum number of changes in one call, so that the script blocks Redis for less than 1 ms. */
export const MAX_CHANGES = 20;
/** Maximum number of rows in one reply, and the number of bytes after which no row is added. */
export const POLLED_ROWS = 100;
export const POLLED_BYTES = 65_536;
/** Maximum bytes of a row's text. */
export const MAX_ROW_BYTES = 32_768;
/** Maximum bytes of all rows, and maximum number of members of the sorted set. Each row has three members. */
export const MAX_LOG_BYTES = 32 * 1024 * 1024;
export const MAX_LOG_MEMBERS = 100_000;
/**
 * Time for which the log keeps ended controls and refilled buckets. A process that polls less often must read the whole
 * log again.
 */
export const KEPT_MICROS = 20_000_000;
/** Maximum size of a reply: the header, the rows, and a prefix for each row. */
const REPLY_BYTES = 1024 + POLLED_BYTES + 2 * MAX_ROW_BYTES + POLLED_ROWS * 128;
/** Maximum bytes of the reply to changes. */
const CHANGED_BYTES = 1024;

/** A change, as control-change.lua expects it in its arguments. */
export interface LogChange {
  readonly what: 'c' | 'g' | 't';
  readonly name: string;
  readonly durationMicros: number;
  readonly id: string;
  readonly text: string;
}

/** Settings of {@link ControlLog}. */
export interface ControlLogOptions {
  readonly redis: Pick<RedisBuckets, 'runScript'>;
  /** Prefix of the key; default `weir:1:`. */
  readonly keyPrefix?: string | undefined;
  /** Maximum number of controls; for tests. */
  readonly maxControls?: number | undefined;
}

/** The log of controls in Redis: one key that {@link ControlLog.poll} reads and {@link ControlLog.change} writes. */
export class ControlLog {
  readonly key: string;
  readonly #options: ControlLogOptions;
  readonly #pollScript = script('control-poll.lua');
  readonly #changeScript = script('control-change.lua');

  constructor(options: ControlLogOptions) {
    this.#options = options;
    this.key = `${options.keyPrefix ?? DEFAULT_KEY_PREFIX}{controls}`;
  }

  /**
   * Returns the log's entries after the version `after`, if the log contains `mark`; otherwise all entries. `mayWait`:
   * see {@link ScriptRequest}.
   */
  async poll(mark: string, after: number, mayWait = false): Promise<ControlsPolled | StorageError> {
    const answer = await this.#options.redis.runScript({
      script: this.#pollScript,
      key: this.key,
      args: [mark, String(after), String(POLLED_ROWS), String(POLLED_BYTES)],
      textBytes: REPLY_BYTES,
      mayWait,
    });
    if (answer instanceof StorageError) return answer;
    return (
      readPolled(answer) ??
      new StorageError('rejected', 'the controls script returned an answer in an unknown format')
    );
  }

  /**
   * Applies at most {@link MAX_CHANGES} changes; returns their versions, or 0 for each refused change. After an error
   * with the reason `timeout`, the changes may have been applied; after any other error, they were not.
   */
  async change(changes: readonly LogChange[]): Promise<readonly number[] | StorageError> {
    const mark = randomBytes(12).toString('base64url');
    const bounds = [this.#options.maxControls ?? MAX_CONTROLS, MAX_LOG_BYTES, MAX_LOG_MEMBERS, KEPT_MICROS];
    const args = [mark, ...bounds.map(String)];
    for (const { what, name, durationMicros, id, text } of changes)
      args.push(what, name, String(durationMicros), id, text);
    const { key } = this;
    const answer = await this.#options.redis.runScript({
      script: this.#changeScript,
      key,
      args,
      textBytes: CHANGED_BYTES,
    });
    if (answer instanceof StorageError) return answer;
    return (
      readChanged(answer, changes.length) ??
      new StorageError('timeout', 'the controls script returned an answer in an unknown format')
    );
  }
}

/** Returns one of the two scripts. */
function script(name: string): string {
  return scriptText(['control-start.lua', name].map((file) => `src/storage/controls/${file}`));
}
