import { type Command, type Redis, ReplyError } from '../../../runtime/ioredis.js';
import { RedisReplyError, UnknownReplyError } from '../connection/redis-error.js';

/** Cached prefixes of an argument, `\r\n$<length>\r\n`, by length. */
const prefixes: string[] = [];
const MAX_PREFIXES = 1024;

function prefix(bytes: number): string {
  const kept = prefixes[bytes];
  if (kept !== undefined) return kept;
  const text = `\r\n$${bytes}\r\n`;
  if (bytes < MAX_PREFIXES) prefixes[bytes] = text;
  return text;
}

const LOST = new Error('the connection to Redis was lost before the reply');

/**
 * A command for ioredis whose bytes are made once. Compared with ioredis's own command, it creates no promise, measures
 * no arguments and converts no reply. It has no arguments of its own, so no error of ioredis contains keys or
 * passwords.
 */
export class RawCommand {
  /** ioredis looks up the properties of a command by name, and EVALSHA has none. */
  readonly name = 'evalsha';
  readonly args: readonly string[] = [];
  readonly isTraced = true;
  readonly promise = undefined;
  readonly #bytes: string | Buffer;
  readonly #done: (reply: Buffer | Error) => void;

  /**
   * `bytes` is the encoded command as a buffer or ASCII text. `done` receives the reply once: a {@link RedisReplyError}
   * if Redis refused the command. After any other error, the command may have run.
   */
  constructor(bytes: string | Buffer, done: (reply: Buffer | Error) => void) {
    this.#bytes = bytes;
    this.#done = done;
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
    this.#done(Buffer.isBuffer(reply) ? reply : new UnknownReplyError());
  }

  reject(error: Error): void {
    this.#done(error instanceof ReplyError ? new RedisReplyError(error.message) : LOST);
  }
}

/** Encodes a command. `ascii`: whether each character is one byte. */
export function encodeCommand(
  command: string,
  args: readonly string[],
): { readonly text: string; readonly ascii: boolean } {
  // Lengths are in bytes. One check of the whole text shows whether they equal the lengths in characters, as is usual.
  const text = encoded(command, args, lengthOf);
  if (Buffer.byteLength(text) === text.length) return { text, ascii: true };
  return { text: encoded(command, args, Buffer.byteLength), ascii: false };
}

function lengthOf(text: string): number {
  return text.length;
}

function encoded(command: string, args: readonly string[], length: (text: string) => number): string {
  let text = `*${args.length + 1}${prefix(command.length)}${command}`;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] as string;
    text += prefix(length(arg)) + arg;
  }
  return `${text}\r\n`;
}
