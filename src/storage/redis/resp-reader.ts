/** What Redis answered to one command: an error of Redis is a value here. */
export type Reply = number | string | null | Error | (number | string | null | Error)[];

type Element = number | string | null | Error;

/** Longest simple string, error or number. Redis cuts its own at much less. */
const MAX_LINE_BYTES = 65_536;
/** Longest bulk string: INFO and the like; nothing larger is asked for. */
const MAX_BULK_BYTES = 1_048_576;
/** Most elements of a reply: three for each item of the largest request, and to spare. */
const MAX_ELEMENTS = 1_048_576;

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
 * Reads replies in RESP2 (Redis serialization protocol) out of chunks that are cut anywhere. Knows what the commands of weir get:
 * simple strings, errors, integers below 2^53, bulk strings and arrays of those; anything else is malformed. There is no way back from that, the
 * connection must end.
 */
export class RespReader {
  private readonly onReply: (reply: Reply) => void;
  /** Bytes of an element that has not come whole. */
  private rest: Buffer = EMPTY;
  /** The array at hand, and how many elements it will have. */
  private array: Element[] | undefined;
  private elements = 0;
  /** Where the element at hand ends, once it was read. */
  private end = 0;

  /** `onReply` gets each whole reply, in order. */
  constructor(onReply: (reply: Reply) => void) {
    this.onReply = onReply;
  }

  /** Reads a chunk. Throws an Error when it is malformed. */
  read(chunk: Buffer): void {
    const data = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    let at = 0;
    while (at < data.length) {
      const begin = at;
      const type = data[at];
      if (type === COLON) {
        const value = this.integer(data, at + 1);
        if (value === undefined) break;
        at = this.end;
        this.deliver(value);
      } else if (type === STAR) {
        if (this.array !== undefined) throw new Error('malformed reply: an array within an array');
        const length = this.integer(data, at + 1);
        if (length === undefined) break;
        if (length > MAX_ELEMENTS) throw new Error('malformed reply: an array too long');
        at = this.end;
        if (length <= 0) this.onReply(length === 0 ? [] : null);
        else {
          this.array = [];
          this.elements = length;
        }
      } else {
        const value = this.text(type, data, at + 1);
        if (value === undefined) break;
        at = this.end;
        this.deliver(value);
      }
      if (at <= begin) throw new Error('malformed reply');
    }
    this.rest = at === data.length ? EMPTY : data.subarray(at);
  }

  private deliver(value: Element): void {
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
      if (at - first > 17) throw new Error('malformed reply: a number too long');
    }
    return undefined;
  }

  /** A simple string, an error or a bulk string; undefined if it has not come whole. Sets `end`. */
  private text(type: number | undefined, data: Buffer, from: number): Element | undefined {
    if (type === DOLLAR) {
      const length = this.integer(data, from);
      if (length === undefined) return undefined;
      if (length < 0) return null;
      if (length > MAX_BULK_BYTES) throw new Error('malformed reply: a bulk string too long');
      const begin = this.end;
      if (begin + length + 2 > data.length) return undefined;
      if (data[begin + length] !== CR || data[begin + length + 1] !== LF) {
        throw new Error('malformed reply: no line end');
      }
      this.end = begin + length + 2;
      return data.toString('utf8', begin, begin + length);
    }
    if (type !== PLUS && type !== MINUS) throw new Error('malformed reply: an unknown type');
    const end = data.indexOf('\r\n', from, 'latin1');
    if (end < 0) {
      if (data.length - from > MAX_LINE_BYTES) throw new Error('malformed reply: a line too long');
      return undefined;
    }
    this.end = end + 2;
    const line = data.toString('utf8', from, end);
    return type === PLUS ? line : new Error(line);
  }
}
