import { DecodeError } from '../messages.js';

export type JsonKind = 'string' | 'number' | 'object' | 'array' | 'true' | 'false' | 'null';

/** A JSON value or member name, with its position in the bytes that it was read from. Strings are not copied. */
export class JsonNode {
  readonly kind: JsonKind;
  /** Position of a string between its quotes. */
  readonly start: number;
  end = 0;
  /** Length of a string in UTF-8, in bytes. */
  utf8Length = 0;
  hasEscapes = false;
  /** Whether a string contains a lone surrogate, which UTF-8 cannot encode. */
  hasLoneSurrogate = false;
  /** Member names of an object. */
  readonly names: JsonNode[];
  /** Member values of an object, in the order of {@link names}, or the items of an array. */
  readonly values: JsonNode[];

  constructor(kind: JsonKind, start: number) {
    this.kind = kind;
    this.start = start;
    const holds = kind === 'object' || kind === 'array';
    this.names = kind === 'object' ? [] : NONE;
    this.values = holds ? [] : NONE;
  }
}

const NONE: JsonNode[] = [];

/** Limits of a JSON text. Reading stops when a limit is exceeded. */
export interface JsonBounds {
  /** Maximum number of values and member names together. */
  readonly values: number;
  readonly depth: number;
  /** Maximum number of members of one object. */
  readonly members: number;
  /**
   * For arrays at a given depth (1 is the outermost value): the maximum number of items in all of them, and the error
   * message if there are more.
   */
  readonly items: ReadonlyMap<number, { readonly most: number; readonly sentence: string }>;
}

/** Bytes that are read in one step. A byte takes about 1.5 ns. */
const STEP_BYTES = 256 * 1024;
/** Cost of a value in addition to its bytes, in bytes. */
const VALUE_COST_BYTES = 64;
/** Maximum length of a number in bytes. Far fewer bytes represent any double exactly. */
const MAX_NUMBER_BYTES = 1024;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const ARRAY_START = 0x5b;
const BACKSLASH = 0x5c;
const ARRAY_END = 0x5d;
const LETTER_U = 0x75;
const OBJECT_START = 0x7b;
const OBJECT_END = 0x7d;
/** Characters that may follow a backslash, except `u`. */
const ESCAPES = Buffer.from('"\\/bfnrt');
const LITERALS: ReadonlyMap<number, 'true' | 'false' | 'null'> = new Map([
  [0x74, 'true'],
  [0x66, 'false'],
  [0x6e, 'null'],
]);

/** The expected next token. */
type Expected = 'value' | 'item or end' | 'name' | 'name or end' | 'colon' | 'comma or end';

/**
 * Reads one JSON value (RFC 8259) in steps of at most about a millisecond, in linear time and without recursion.
 * `bytes` must be UTF-8. Throws {@link DecodeError} with a sentence for the caller. Duplicate member names are all
 * kept.
 */
export function* readJson(bytes: Uint8Array, bounds: JsonBounds): Generator<void, JsonNode> {
  const reader = new JsonReader(bytes, bounds);
  while (!reader.advance()) yield;
  return reader.root as JsonNode;
}

/** Parses four hexadecimal digits as a UTF-16 code unit. Returns -1 if they are invalid. */
export function parseHexUnit(bytes: Uint8Array, at: number): number {
  let unit = 0;
  for (let index = at; index < at + 4; index++) {
    const byte = bytes[index] ?? 0;
    const letter = byte | 0x20;
    if (byte >= 0x30 && byte <= 0x39) unit = unit * 16 + byte - 0x30;
    else if (letter >= 0x61 && letter <= 0x66) unit = unit * 16 + letter - 0x57;
    else return -1;
  }
  return unit;
}

class JsonReader {
  root: JsonNode | undefined;
  readonly #bytes: Uint8Array;
  readonly #bounds: JsonBounds;
  #at = 0;
  #expected: Expected = 'value';
  /** Objects and arrays that are not closed yet. */
  readonly #open: JsonNode[] = [];
  /** The string that is being read, and whether it is a member name. */
  #text: JsonNode | undefined;
  #textIsName = false;
  #values = 0;
  /** Number of array items by depth. */
  readonly #items: number[] = [];
  #stepLeft = 0;

  constructor(bytes: Uint8Array, bounds: JsonBounds) {
    this.#bytes = bytes;
    this.#bounds = bounds;
  }

  /** Runs one step. Returns true once everything is read. */
  advance(): boolean {
    const bytes = this.#bytes;
    this.#stepLeft = STEP_BYTES;
    while (this.#stepLeft > 0) {
      const start = this.#at;
      if (this.#text !== undefined) {
        this.#readText(this.#text);
      } else {
        this.#skipSpace();
        if (this.#at === bytes.length) {
          if (this.root === undefined || this.#open.length > 0) this.#fail('the text ends unexpectedly');
          return true;
        }
        if (this.#stepLeft > this.#at - start) this.#readToken(bytes[this.#at] as number);
      }
      this.#stepLeft -= this.#at - start;
    }
    return false;
  }

  #skipSpace(): void {
    const bytes = this.#bytes;
    const limit = Math.min(bytes.length, this.#at + this.#stepLeft);
    let at = this.#at;
    for (; at < limit; at++) {
      const byte = bytes[at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    }
    this.#at = at;
  }

  #readToken(byte: number): void {
    const holder = this.#open[this.#open.length - 1];
    const inObject = holder?.kind === 'object';
    switch (this.#expected) {
      case 'item or end':
        if (byte === ARRAY_END) this.#close();
        else this.#readValue(byte);
        break;
      case 'value':
        this.#readValue(byte);
        break;
      case 'name or end':
        if (byte === OBJECT_END) this.#close();
        else this.#startName(byte);
        break;
      case 'name':
        this.#startName(byte);
        break;
      case 'colon':
        if (byte !== COLON) this.#failHere();
        this.#at++;
        this.#expected = 'value';
        break;
      case 'comma or end':
        if (holder === undefined) this.#failHere();
        if (byte === COMMA) {
          this.#at++;
          this.#expected = inObject ? 'name' : 'value';
        } else if (byte === (inObject ? OBJECT_END : ARRAY_END)) this.#close();
        else this.#failHere();
    }
  }

  #close(): void {
    const closed = this.#open.pop() as JsonNode;
    closed.end = ++this.#at;
    this.#expected = 'comma or end';
  }

  #startName(byte: number): void {
    if (byte !== QUOTE) this.#failHere();
    const name = new JsonNode('string', ++this.#at);
    this.#count();
    const { members } = this.#bounds;
    if ((this.#open[this.#open.length - 1]?.names.push(name) ?? 0) > members) {
      throw new DecodeError(`a JSON object has more than ${members} members`);
    }
    this.#text = name;
    this.#textIsName = true;
  }

  #readValue(byte: number): void {
    if (byte === OBJECT_START) this.#openContainer('object');
    else if (byte === ARRAY_START) this.#openContainer('array');
    else if (byte === QUOTE) {
      this.#text = this.#add('string', ++this.#at);
      this.#textIsName = false;
    } else {
      const literal = LITERALS.get(byte);
      if (literal === undefined) this.#readNumber();
      else this.#readLiteral(literal);
      this.#expected = 'comma or end';
    }
  }

  #readLiteral(literal: 'true' | 'false' | 'null'): void {
    const start = this.#at;
    const end = start + literal.length;
    for (let index = 0; index < literal.length; index++) {
      if (this.#bytes[start + index] !== literal.charCodeAt(index)) this.#failHere(start + index);
    }
    this.#add(literal, start).end = end;
    this.#at = end;
  }

  #openContainer(kind: 'object' | 'array'): void {
    const holder = this.#add(kind, this.#at);
    const { depth } = this.#bounds;
    if (this.#open.push(holder) > depth) throw new DecodeError(`JSON is nested deeper than ${depth} levels`);
    this.#at++;
    this.#expected = kind === 'object' ? 'name or end' : 'item or end';
  }

  #readNumber(): void {
    const bytes = this.#bytes;
    const start = this.#at;
    const limit = Math.min(bytes.length, start + MAX_NUMBER_BYTES + 1);
    let end = start;
    while (end < limit && isNumberByte(bytes[end] as number)) end++;
    if (end - start > MAX_NUMBER_BYTES) this.#fail(`a number at byte ${start} is too long`);
    if (!NUMBER.test(Buffer.from(bytes.subarray(start, end)).toString('latin1'))) this.#failHere();
    this.#add('number', start).end = end;
    this.#at = end;
  }

  #add(kind: JsonKind, start: number): JsonNode {
    this.#count();
    const node = new JsonNode(kind, start);
    const depth = this.#open.length;
    const holder = this.#open[depth - 1];
    if (holder === undefined) this.root = node;
    else {
      holder.values.push(node);
      if (holder.kind === 'array') this.#countItem(depth);
    }
    return node;
  }

  #count(): void {
    this.#stepLeft -= VALUE_COST_BYTES;
    const { values } = this.#bounds;
    if (++this.#values > values) {
      throw new DecodeError(
        `the JSON body has at least ${values + 1} values and names, more than the ${values} that are ` +
          'allowed in one request',
      );
    }
  }

  #countItem(depth: number): void {
    const bound = this.#bounds.items.get(depth);
    if (bound === undefined) return;
    const count = (this.#items[depth] ?? 0) + 1;
    this.#items[depth] = count;
    if (count > bound.most) throw new DecodeError(bound.sentence);
  }

  #readText(text: JsonNode): void {
    const bytes = this.#bytes;
    const limit = Math.min(bytes.length, this.#at + this.#stepLeft);
    let at = this.#at;
    let utf8Length = text.utf8Length;
    while (at < limit) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) {
        text.utf8Length = utf8Length;
        text.end = at;
        this.#at = at + 1;
        this.#text = undefined;
        this.#expected = this.#textIsName ? 'colon' : 'comma or end';
        return;
      }
      if (byte === BACKSLASH) {
        text.hasEscapes = true;
        utf8Length += this.#escapedLength(text, at);
        at = this.#at;
      } else {
        if (byte < 0x20) this.#failHere(at);
        at++;
        utf8Length++;
      }
    }
    text.utf8Length = utf8Length;
    this.#at = at;
    if (at >= bytes.length) this.#fail('the text ends unexpectedly');
  }

  /** Returns the length in UTF-8 of the escape sequence at `at`, and moves past it. */
  #escapedLength(text: JsonNode, at: number): number {
    const bytes = this.#bytes;
    const letter = bytes[at + 1] ?? 0;
    if (letter !== LETTER_U) {
      if (!ESCAPES.includes(letter)) this.#failHere(at);
      this.#at = at + 2;
      return 1;
    }
    const unit = parseHexUnit(bytes, at + 2);
    if (unit < 0) this.#failHere(at);
    this.#at = at + 6;
    if (unit < 0x80) return 1;
    if (unit < 0x800) return 2;
    if (unit < 0xd800 || unit > 0xdfff) return 3;
    if (unit < 0xdc00 && bytes[at + 6] === BACKSLASH && bytes[at + 7] === LETTER_U) {
      const low = parseHexUnit(bytes, at + 8);
      if (low >= 0xdc00 && low <= 0xdfff) {
        this.#at = at + 12;
        return 4;
      }
    }
    text.hasLoneSurrogate = true;
    return 3;
  }

  #failHere(at = this.#at): never {
    const byte = this.#bytes[at];
    if (byte === undefined) this.#fail('the text ends unexpectedly');
    const shown =
      byte > 0x20 && byte < 0x7f ? `'${String.fromCharCode(byte)}'` : `byte 0x${byte.toString(16)}`;
    this.#fail(`unexpected ${shown} at byte ${at}`);
  }

  #fail(why: string): never {
    throw new DecodeError(`the body is not JSON: ${why}`);
  }
}

/** Returns whether a byte is a digit, a sign, a decimal point, or the letter of an exponent. */
function isNumberByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e ||
    (byte | 0x20) === 0x65
  );
}
