import { RedisReplyError } from './redis-error.js';
import type { ReplyBound } from './reply-bound.js';

/** A reply to one command; errors of Redis are values. */
export type Reply = number | string | RedisReplyError | readonly number[];

/** Maximum length of an error line. Redis truncates its errors to much less. */
const MAX_LINE_BYTES = 16_384;
/** Maximum length of an error's text, which is logged. */
const MAX_ERROR_LENGTH = 512;
/** Number of digits of 2^53. */
const MAX_DIGITS = 16;
const MAX_TEXT = 2 ** 53;

const CR = 13;
const LF = 10;
const PLUS = 43;
const MINUS = 45;
const ZERO = 48;
const COLON = 58;
const DOLLAR = 36;
const STAR = 42;
const EMPTY = Buffer.alloc(0);

/**
 * Reads RESP2 replies (Redis serialization protocol) from chunks of any size. Supports the replies to weir's commands:
 * simple strings, errors, integers from -2^53 to 2^53-1, bulk strings, and arrays of integers. Any other reply is
 * malformed, including null, an unexpected reply and one over its bound. The connection must end after a malformed
 * reply or an unexpected error.
 *
 * Stores only the integers of the current array and the bytes of the current element, which the bounds limit.
 */
export class RespReader {
  private readonly onReply: (reply: Reply) => void;
  private readonly asked: () => ReplyBound | undefined;
  /** Bytes of an incomplete element. */
  private rest: Buffer = EMPTY;
  /** The current array, and its expected number of elements. */
  private array: number[] | undefined;
  private elements = 0;
  /** End of the current element, once it has been read. */
  private end = 0;

  /**
   * `onReply` receives each complete reply, in order. `asked` returns the bound of the current reply, or undefined if
   * no reply is expected.
   */
  constructor(onReply: (reply: Reply) => void, asked: () => ReplyBound | undefined) {
    this.onReply = onReply;
    this.asked = asked;
  }

  /** Reads a chunk. Throws an Error if it is malformed. */
  read(chunk: Buffer): void {
    const data = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    let at = 0;
    while (at < data.length) {
      const type = data[at];
      if (type === COLON) {
        if (this.array === undefined) this.bound();
        const value = this.integer(data, at + 1);
        if (value === undefined) break;
        at = this.end;
        this.deliver(value);
        continue;
      }
      if (this.array !== undefined)
        throw new Error('malformed reply: an array with an element that is not an integer');
      if (type === MINUS && this.asked() === undefined) {
        // Redis sends the reason before it closes the connection.
        const error = this.text(type, data, at + 1, 0);
        if (error === undefined) break;
        throw new Error((error as RedisReplyError).message);
      }
      const bound = this.bound();
      if (type === STAR) {
        const length = this.integer(data, at + 1);
        if (length === undefined) break;
        if (length < 0) throw new Error('malformed reply: null');
        if (length > bound.integers) throw new Error('malformed reply: an array is longer than requested');
        at = this.end;
        if (length === 0) this.onReply([]);
        else {
          this.array = [];
          this.elements = length;
        }
      } else {
        const value = this.text(type, data, at + 1, bound.textBytes);
        if (value === undefined) break;
        at = this.end;
        this.onReply(value);
      }
    }
    this.rest = at === data.length ? EMPTY : data.subarray(at);
  }

  private bound(): ReplyBound {
    const bound = this.asked();
    if (bound === undefined) throw new Error('malformed reply: no request was sent');
    return bound;
  }

  private deliver(value: number): void {
    const { array } = this;
    if (array === undefined) {
      this.onReply(value);
      return;
    }
    array.push(value);
    if (array.length === this.elements) {
      this.array = undefined;
      this.onReply(array);
    }
  }

  /** Reads a decimal number and its line end, starting at `from`; returns undefined if it is incomplete. Sets `end`. */
  private integer(data: Buffer, from: number): number | undefined {
    let at = from;
    const negative = data[at] === MINUS;
    if (negative) at++;
    const first = at;
    let value = 0;
    while (at < data.length) {
      const digit = (data[at] as number) - ZERO;
      if (digit < 0 || digit > 9) {
        if (data[at] !== CR || at === first) throw new Error('malformed reply: not a number');
        if (at + 1 === data.length) return undefined;
        if (data[at + 1] !== LF) throw new Error('malformed reply: no line end');
        this.end = at + 2;
        return negative ? -value : value;
      }
      // The usual number * 10 + code - 48 could exceed the safe integers in between.
      value = value * 10 + digit;
      at++;
      // The script returns -1 - count for a window over its limit, and a count may be 2^53-1. Other numbers that round
      // to 2^53 have another last digit.
      if (value > Number.MAX_SAFE_INTEGER && !(negative && value === MAX_TEXT && digit === 2)) {
        throw new Error('malformed reply: a number is too large');
      }
      if (at - first > MAX_DIGITS) throw new Error('malformed reply: a number is too long');
    }
    return undefined;
  }

  /** Reads a simple string, an error or a bulk string; returns undefined if it is incomplete. Sets `end`. */
  private text(
    type: number | undefined,
    data: Buffer,
    from: number,
    most: number,
  ): string | RedisReplyError | undefined {
    if (type === DOLLAR) {
      const length = this.integer(data, from);
      if (length === undefined) return undefined;
      if (length < 0) throw new Error('malformed reply: null');
      if (length > most) throw new Error('malformed reply: a string is longer than requested');
      const begin = this.end;
      if (begin + length + 2 > data.length) return undefined;
      if (data[begin + length] !== CR || data[begin + length + 1] !== LF) {
        throw new Error('malformed reply: no line end');
      }
      this.end = begin + length + 2;
      return data.toString('utf8', begin, begin + length);
    }
    if (type !== PLUS && type !== MINUS) throw new Error('malformed reply: an unknown type');
    const longest = type === PLUS ? most : MAX_LINE_BYTES;
    const end = data.indexOf('\r\n', from, 'latin1');
    if ((end < 0 ? data.length - 1 : end) - from > longest)
      throw new Error('malformed reply: a line is too long');
    if (end < 0) return undefined;
    this.end = end + 2;
    const line = data.toString('utf8', from, end);
    return type === PLUS ? line : new RedisReplyError(line.slice(0, MAX_ERROR_LENGTH));
  }
}
