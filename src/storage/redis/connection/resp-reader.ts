import { RedisReplyError } from './redis-error.js';
import type { ReplyBound } from './reply-bound.js';

/** What Redis answered to one command: an error of Redis is a value here. */
export type Reply = number | string | RedisReplyError | readonly number[];

/** Longest line of an error. Redis cuts its own at much less. */
const MAX_LINE_BYTES = 16_384;
/** What is kept of an error's text, which goes to the log. */
const MAX_ERROR_LENGTH = 512;
/** Digits of 2^53. */
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
/** A whole number below 2^53, as a text. */
const INTEGER = /^\d{1,15}$/;
const NO_INTEGER = '';

/**
 * Reads replies in RESP2 (Redis serialization protocol) out of chunks that are cut anywhere. Knows what the commands of
 * weir get: simple strings, errors, integers from -2^53 to 2^53-1, bulk strings and arrays of integers, also as bulk
 * strings where they are asked for, none longer than what was asked for; anything else is malformed, null and a reply
 * to nothing included. There is no way back from that, nor from an error that answers nothing: the connection must end.
 *
 * Keeps the integers of the array at hand and the bytes of the element at hand: no more than what was asked for takes,
 * whatever comes.
 */
export class RespReader {
  private readonly onReply: (reply: Reply) => void;
  private readonly asked: () => ReplyBound | undefined;
  /** Bytes of an element that has not come whole. */
  private rest: Buffer = EMPTY;
  /** The array at hand, and how many elements it will have. */
  private array: number[] | undefined;
  private elements = 0;
  /** Where the element at hand ends, once it was read. */
  private end = 0;

  /**
   * `onReply` gets each whole reply, in order. `asked` tells how long the reply at hand may be, undefined if nothing
   * was asked.
   */
  constructor(onReply: (reply: Reply) => void, asked: () => ReplyBound | undefined) {
    this.onReply = onReply;
    this.asked = asked;
  }

  /** Reads a chunk. Throws an Error when it is malformed. */
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
      if (this.array !== undefined) {
        const { textBytes } = this.bound();
        const text = type === DOLLAR && textBytes > 0 ? this.text(type, data, at + 1, textBytes) : NO_INTEGER;
        if (text === undefined) break;
        if (typeof text !== 'string' || !INTEGER.test(text)) {
          throw new Error('malformed reply: an array of what is no integer');
        }
        at = this.end;
        this.deliver(Number(text));
        continue;
      }
      if (type === MINUS && this.asked() === undefined) {
        // Redis says why it hangs up.
        const error = this.text(type, data, at + 1, 0);
        if (error === undefined) break;
        throw new Error((error as RedisReplyError).message);
      }
      const bound = this.bound();
      if (type === STAR) {
        const length = this.integer(data, at + 1);
        if (length === undefined) break;
        if (length < 0) throw new Error('malformed reply: null');
        if (length > bound.integers)
          throw new Error('malformed reply: an array longer than what was asked for');
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
    if (bound === undefined) throw new Error('malformed reply: nothing was asked');
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

  /** A decimal number and its line end from `from` on; undefined if it has not come whole. Sets `end`. */
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
      // Not number * 10 + code - 48, which leaves the safe integers on its way.
      value = value * 10 + digit;
      at++;
      // The script says -1 - count of a window that was over, and a count may be 2^53-1. What rounds to 2^53 ends with
      // another digit.
      if (value > Number.MAX_SAFE_INTEGER && !(negative && value === MAX_TEXT && digit === 2)) {
        throw new Error('malformed reply: a number too large');
      }
      if (at - first > MAX_DIGITS) throw new Error('malformed reply: a number too long');
    }
    return undefined;
  }

  /** A simple string, an error or a bulk string; undefined if it has not come whole. Sets `end`. */
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
      if (length > most) throw new Error('malformed reply: a text longer than what was asked for');
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
      throw new Error('malformed reply: a line too long');
    if (end < 0) return undefined;
    this.end = end + 2;
    const line = data.toString('utf8', from, end);
    return type === PLUS ? line : new RedisReplyError(line.slice(0, MAX_ERROR_LENGTH));
  }
}
