import { readAsset } from '../../assets.js';
import { StorageError } from '../../limiter/bucket-store.js';
import { timerMs } from '../../limiter/clock.js';
import { ignore } from '../../runtime/ignore.js';
import { withTimeout } from '../../runtime/turns.js';
import { RedisReplyError } from './connection/redis-error.js';
import { nodeFaultOf } from './node/faults.js';
import type { RedisNode } from './node/redis-node.js';
import type { RedisStoreOptions } from './redis-store-options.js';

/** Minimum timeout: no decision waits for the reply, so it may take longer than a decision (REDIS_TIMEOUT). */
const MIN_TIMEOUT_MS = 500;

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

/**
 * Runs scripts that are not takes, on the connection of takes, and only while it is up. Each request is sent once.
 * Failures do not open the circuit breaker, because only takes decide whether Redis works. They are reported to the
 * connection only if it must look for another Redis or get a new login.
 */
export class ScriptRequests {
  readonly #name: string;
  readonly #timeoutMs: number;
  readonly #connection: () => RedisNode;
  readonly #clock: (() => number) | undefined;

  constructor(options: RedisStoreOptions, connection: () => RedisNode) {
    this.#name = options.address.redactedAddress;
    this.#timeoutMs = Math.max(MIN_TIMEOUT_MS, timerMs(options.timeoutMicros));
    this.#connection = connection;
    this.#clock = options.clock;
  }

  /**
   * Runs a script. Never rejects, and ends within the larger of REDIS_TIMEOUT and 0.5 s. The `cause` of an error is
   * Redis's error, if Redis sent one. `asking`: sends ASKING first, for a slot that is migrating to this node.
   */
  async run(request: ScriptRequest, asking = false): Promise<ScriptReply> {
    const { up, downReason, hasRoom } = this.#connection();
    if (!up) return new StorageError(downReason, `Redis ${this.#name} is unavailable`, { unsent: true });
    if (!hasRoom)
      return new StorageError('overloaded', `Redis ${this.#name} has not answered the previous requests`);
    const late = () => new StorageError('timeout', `Redis ${this.#name} did not answer in time`);
    return withTimeout(this.#timeoutMs, this.#answer(request, asking), late);
  }

  async #answer({ script, key, args }: ScriptRequest, asking: boolean): Promise<ScriptReply> {
    // ASKING applies only to the next command, whose error reports any problem.
    if (asking) this.#connection().send('asking', []).catch(ignore);
    const all = [script, '1', key, String(this.#clock?.() ?? ''), ...args];
    try {
      return String(await this.#connection().send('eval', all));
    } catch (error) {
      return this.#failure(error as Error);
    }
  }

  #failure(error: Error): StorageError {
    if (!(error instanceof RedisReplyError))
      return new StorageError('timeout', `the connection to Redis ${this.#name} was lost before the reply`);
    const { reaction } = nodeFaultOf(error.message);
    if (reaction === 'reconnect') this.#connection().noteFailure(error);
    return new StorageError('rejected', error.message, { cause: error });
  }
}

/** Returns a script without comments and indentation, because each call sends the whole text. */
export function scriptText(paths: readonly string[]): string {
  return paths
    .map(readAsset)
    .join('')
    .replaceAll(/^[ \t]*(?:--.*)?\n|^[ \t]+/gm, '');
}
