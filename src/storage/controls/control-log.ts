import { randomBytes } from 'node:crypto';
import { readAsset } from '../../assets.js';
import { StorageError } from '../../limiter/bucket-store.js';
import { MAX_CONTROLS } from '../../limiter/control.js';
import type { RedisBuckets } from '../redis/redis-buckets.js';
import { DEFAULT_KEY_PREFIX } from '../redis/redis-key.js';
import { type ControlsPolled, readChanged, readPolled } from './control-rows.js';

/** Most changes of one call: a script keeps Redis busy for a fraction of a millisecond. */
export const MAX_CHANGES = 20;
/** Most rows of one answer, and bytes after which there are no more. */
export const POLLED_ROWS = 100;
export const POLLED_BYTES = 65_536;
/** Most bytes of one row's text. */
export const MAX_ROW_BYTES = 32_768;
/** Most bytes of all rows, and most members of the set, which has three for each row. */
export const MAX_LOG_BYTES = 32 * 1024 * 1024;
export const MAX_LOG_MEMBERS = 100_000;
/** How long others have to read that a control was ended, or a bucket given tokens, before they must read all anew. */
export const KEPT_MICROS = 20_000_000;
/** Beside rows: a header, and what each row begins with. */
const REPLY_BYTES = 1024 + POLLED_BYTES + 2 * MAX_ROW_BYTES + POLLED_ROWS * 128;
/** Numbers of a reply to changes. */
const CHANGED_BYTES = 1024;

/** One change, as control-change.lua takes it. */
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
  /** Default `weir:1:`. */
  readonly keyPrefix?: string | undefined;
  /** For tests. */
  readonly maxControls?: number | undefined;
}

/** The log of controls in one Redis: a key that {@link ControlLog.poll} reads, and {@link ControlLog.change} writes. */
export class ControlLog {
  readonly key: string;
  readonly #options: ControlLogOptions;
  readonly #pollScript = script('control-poll.lua');
  readonly #changeScript = script('control-change.lua');

  constructor(options: ControlLogOptions) {
    this.#options = options;
    this.key = `${options.keyPrefix ?? DEFAULT_KEY_PREFIX}{controls}`;
  }

  /** What is new since version `after` of the log that has `mark`. `mayWait`: see {@link ScriptRequest}. */
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
      readPolled(answer) ?? new StorageError('rejected', 'the script of controls answered in an unknown form')
    );
  }

  /**
   * Makes changes, at most {@link MAX_CHANGES}. The versions that they have now, each 0 where it was not made. With an
   * error of reason `timeout` nobody knows whether they were made; with any other they were not.
   */
  async change(changes: readonly LogChange[]): Promise<readonly number[] | StorageError> {
    const mark = randomBytes(12).toString('base64url');
    const most = [this.#options.maxControls ?? MAX_CONTROLS, MAX_LOG_BYTES, MAX_LOG_MEMBERS, KEPT_MICROS];
    const args = [mark, ...most.map(String)];
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
      new StorageError('timeout', 'the script of controls answered in an unknown form')
    );
  }
}

/** Lines of comments and indents are for readers. */
function script(name: string): string {
  const texts = ['control-start.lua', name].map((file) => readAsset(`src/storage/controls/${file}`));
  return texts.join('').replaceAll(/^[ \t]*(?:--.*)?\n|^[ \t]+/gm, '');
}
