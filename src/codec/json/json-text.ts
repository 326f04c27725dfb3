import { type JsonNode, parseHexUnit } from './json-tree.js';

const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
/** Characters that one-letter escapes stand for, by letter. Other escaped characters stand for themselves. */
const ESCAPED: ReadonlyMap<number, number> = new Map([
  [0x62, 0x08],
  [0x66, 0x0c],
  [0x6e, 0x0a],
  [0x72, 0x0d],
  [0x74, 0x09],
]);

/**
 * Writes the text of a JSON string as UTF-8, `utf8Length` bytes in total. The string must not contain lone surrogates.
 */
export class JsonTextCopy {
  readonly #from: Uint8Array;
  readonly #node: JsonNode;
  readonly #to: Uint8Array;
  #read: number;
  #written: number;

  /** Copies the string of `node`, which was read from `from`, to `to[at, …)`. */
  constructor(from: Uint8Array, node: JsonNode, to: Uint8Array, at: number) {
    this.#from = from;
    this.#node = node;
    this.#to = to;
    this.#read = node.start;
    this.#written = at;
  }

  /** Copies about `bytes` more bytes. Returns true at the end. */
  advance(bytes: number): boolean {
    const { hasEscapes, end } = this.#node;
    const stop = Math.min(this.#read + bytes, end);
    if (hasEscapes) this.#unescape(stop);
    else {
      this.#to.set(this.#from.subarray(this.#read, stop), this.#written);
      this.#written += stop - this.#read;
      this.#read = stop;
    }
    return this.#read >= end;
  }

  /** Copies up to the first end of a character at or after `stop`. */
  #unescape(stop: number): void {
    const from = this.#from;
    const to = this.#to;
    let read = this.#read;
    let written = this.#written;
    while (read < stop) {
      const byte = from[read] as number;
      if (byte !== BACKSLASH) {
        to[written++] = byte;
        read++;
        continue;
      }
      const letter = from[read + 1] as number;
      if (letter !== LETTER_U) {
        to[written++] = ESCAPED.get(letter) ?? letter;
        read += 2;
        continue;
      }
      const unit = parseHexUnit(from, read + 2);
      read += 6;
      if (unit < 0x80) {
        to[written++] = unit;
      } else if (unit < 0x800) {
        to[written++] = 0xc0 | (unit >> 6);
        to[written++] = 0x80 | (unit & 0x3f);
      } else if (unit < 0xd800 || unit > 0xdfff) {
        to[written++] = 0xe0 | (unit >> 12);
        to[written++] = 0x80 | ((unit >> 6) & 0x3f);
        to[written++] = 0x80 | (unit & 0x3f);
      } else {
        const point = 0x1_0000 + ((unit & 0x3ff) << 10) + (parseHexUnit(from, read + 2) & 0x3ff);
        read += 6;
        to[written++] = 0xf0 | (point >> 18);
        to[written++] = 0x80 | ((point >> 12) & 0x3f);
        to[written++] = 0x80 | ((point >> 6) & 0x3f);
        to[written++] = 0x80 | (point & 0x3f);
      }
    }
    this.#read = read;
    this.#written = written;
  }
}

/** Returns a short JSON string, or undefined if it has more than `maxBytes` or contains a lone surrogate. */
export function shortText(bytes: Uint8Array, node: JsonNode, maxBytes: number): string | undefined {
  if (node.hasLoneSurrogate || node.utf8Length > maxBytes) return undefined;
  const text = Buffer.allocUnsafe(node.utf8Length);
  new JsonTextCopy(bytes, node, text, 0).advance(Number.POSITIVE_INFINITY);
  return text.toString();
}
