import { type Command, type Redis, ReplyError } from '../../../ioredis.js';
import { RedisReplyError, UnknownReplyError } from '../connection/redis-error.js';
import type { ReplyBound } from '../connection/reply-bound.js';

const LOST = new Error('the connection to Redis was lost before the reply');

/** What happens to a {@link ScriptCall}. Exactly one method is called, once. */
export interface ScriptCallResult {
  replied(reply: unknown): void;
  /** `error` is a {@link RedisReplyError} if Redis refused the command. Any other error means that it may have run. */
  failed(error: Error): void;
}

/**
 * A command for ioredis whose bytes are made once. Compared with ioredis's own command, it creates no promise, measures
 * no arguments and converts no reply. It has no arguments of its own, so no error of ioredis contains keys or
 * passwords.
 */
export class ScriptCall {
  /** ioredis looks up the properties of a command by name, and EVALSHA has none. */
  readonly name = 'evalsha';
  readonly args: readonly string[] = [];
  readonly isTraced = true;
  readonly promise = undefined;
  readonly #bytes: string | Buffer;
  readonly #bound: ReplyBound;
  readonly #result: ScriptCallResult;

  /** `bytes` is the encoded command as a buffer or ASCII text, and `bound` the maximum size of its reply. */
  constructor(bytes: string | Buffer, bound: ReplyBound, result: ScriptCallResult) {
    this.#bytes = bytes;
    this.#bound = bound;
    this.#result = result;
  }

  /** Passes this command to ioredis, whose types accept only its own class. */
  sendTo(redis: Redis): void {
    redis.sendCommand(this as unknown as Command);
  }

  setReplyContext(): void {}

  toWritable(): string | Buffer {
    return this.#bytes;
  }

  resolve(reply: unknown): void {
    const value = replyValue(reply, this.#bound);
    if (value === undefined) this.#result.failed(new UnknownReplyError());
    else this.#result.replied(value);
  }

  reject(error: Error): void {
    this.#result.failed(error instanceof ReplyError ? new RedisReplyError(error.message) : LOST);
  }
}

/** ioredis passes integers as strings (`stringNumbers`), and strings as buffers. Returns undefined beyond the bound. */
function replyValue(reply: unknown, { integers, textBytes }: ReplyBound): unknown {
  if (Buffer.isBuffer(reply)) return reply.length <= textBytes ? reply.toString() : undefined;
  if (!Array.isArray(reply)) return integerOf(reply);
  if (reply.length > integers) return undefined;
  const values: number[] = [];
  for (const element of reply) {
    const value = integerOf(element);
    if (value === undefined) return undefined;
    values.push(value);
  }
  return values;
}

function integerOf(text: unknown): number | undefined {
  if (typeof text !== 'string') return undefined;
  const value = Number(text);
  // The script returns -1 - count for a window over its limit, and a count may be 2^53-1.
  return value <= Number.MAX_SAFE_INTEGER && value >= -(2 ** 53) ? value : undefined;
}
