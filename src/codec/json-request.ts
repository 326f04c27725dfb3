import { DecodeError, type Descriptor, type RateLimitRequest, type RequestBounds } from './messages.js';

/** An object that JSON.parse returned. Its names are in {@link FIELD_BITS}, and no field occurs twice. */
type Members = Readonly<Record<string, unknown>>;

/** Field names of each message, as in the proto file and in camelCase. */
const REQUEST: ReadonlySet<string> = new Set(['domain', 'descriptors', 'hitsAddend', 'hits_addend']);
const DESCRIPTOR: ReadonlySet<string> = new Set([
  'entries',
  'limit',
  'hitsAddend',
  'hits_addend',
  'isNegativeHits',
  'is_negative_hits',
]);
const ENTRY: ReadonlySet<string> = new Set(['key', 'value']);
const OVERRIDE: ReadonlySet<string> = new Set(['requestsPerUnit', 'requests_per_unit', 'unit']);

/** One bit for each field. Both spellings of a name have the same bit. */
const FIELD_BITS: ReadonlyMap<string, number> = new Map([
  ['domain', 1],
  ['descriptors', 2],
  ['hitsAddend', 4],
  ['hits_addend', 4],
  ['entries', 8],
  ['limit', 16],
  ['isNegativeHits', 32],
  ['is_negative_hits', 32],
  ['key', 64],
  ['value', 128],
  ['requestsPerUnit', 256],
  ['requests_per_unit', 256],
  ['unit', 512],
]);

/** envoy.type.v3.RateLimitUnit. */
const UNITS: ReadonlyMap<string, number> = new Map(
  ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR'].map((name, number) => [name, number]),
);

const UINT32_MAX = 0xffff_ffff;
const UINT64_MAX = (1n << 64n) - 1n;
/** Integers in 64-bit fields that JSON.parse would round. */
const LONG_HITS = /("(?:hitsAddend|hits_addend)"\s*:\s*)([1-9]\d{15,})(?![\d.eE])/g;
/** Maximum nesting of lists and objects. A request needs 5 levels. */
export const MAX_JSON_DEPTH = 16;
/** Maximum length of a string with an integer of 64 bits. BigInt takes milliseconds for thousands of digits. */
const MAX_NUMERAL = 100;
/** Maximum number of characters of a value or a name that are quoted in error messages. */
const MAX_SHOWN = 30;
const MAX_SHOWN_NAME = 200;

const [QUOTE, BACKSLASH, COLON, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = Array.from(
  '"\\:[]{}',
  (character) => character.charCodeAt(0),
);

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Decodes a RateLimitRequest in protobuf JSON (https://protobuf.dev/programming-guides/json/). Field names are in
 * camelCase or as in the proto file, enums are names or numbers, and unknown fields are errors, as in Go's protojson.
 * Throws {@link DecodeError} with a sentence for the caller.
 */
export function requestFromJson(json: Uint8Array, bounds: RequestBounds): RateLimitRequest {
  let text: string;
  try {
    text = UTF8.decode(json);
  } catch {
    throw new DecodeError('the body is not JSON: it is not valid UTF-8');
  }
  // Valid UTF-8 has no lone surrogates, so only an escape can create one.
  return new RequestReader(bounds, text.includes('\\u')).read(parse(text));
}

function parse(text: string): unknown {
  checkNames(text);
  try {
    // A quoted number is the same number, and keeps all of its digits.
    return JSON.parse(text.replace(LONG_HITS, '$1"$2"'));
  } catch (error) {
    throw new DecodeError(`the body is not JSON: ${(error as SyntaxError).message}`);
  }
}

/**
 * Refuses unknown and repeated names, and deep nesting. JSON.parse keeps only the last value of a repeated name, and
 * takes milliseconds for thousands of different names or levels. Accepts any other text, whether it is JSON or not.
 */
function checkNames(text: string): void {
  /** For each open object and list, the bits of its fields so far. */
  const open: number[] = [];
  let stringStart = 0;
  let stringEnd = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) {
      stringStart = at;
      at = endOfString(text, at);
      stringEnd = at + 1;
    } else if (character === COLON) {
      // Only the name of a field can be before a colon.
      const name = nameOf(text, stringStart, stringEnd);
      const bit = FIELD_BITS.get(name);
      if (bit === undefined) refuse('', `key "${shortened(name, MAX_SHOWN_NAME)}" is unknown`);
      const seen = open.pop() ?? 0;
      if ((seen & bit) !== 0) refuse('', `${name} is set multiple times`);
      open.push(seen | bit);
    } else if (character === OPEN_OBJECT || character === OPEN_LIST) {
      if (open.push(0) > MAX_JSON_DEPTH) {
        throw new DecodeError(`the JSON body is nested deeper than ${MAX_JSON_DEPTH} levels`);
      }
    } else if (character === CLOSE_OBJECT || character === CLOSE_LIST) open.pop();
  }
}

/** Returns the offset of the closing quote of the string that starts at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  while (at >= 0 && isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at < 0 ? text.length : at;
}

/** Returns whether an odd number of backslashes is before `at`. */
function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text.charCodeAt(first - 1) === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}

/**
 * Returns the name whose quotes are at `start` and before `end`. A name with invalid escapes is returned as it is,
 * which is not a field. Most names are those of entries, and comparing takes a quarter of the time of a slice.
 */
function nameOf(text: string, start: number, end: number): string {
  if (text.startsWith('"key"', start)) return 'key';
  if (text.startsWith('"value"', start)) return 'value';
  const quoted = text.slice(start, end);
  if (!quoted.includes('\\')) return quoted.slice(1, -1);
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted;
  }
}

/** Converts a request from the values of JSON.parse. */
class RequestReader {
  readonly #bounds: RequestBounds;
  readonly #mayHaveSurrogates: boolean;
  #entriesLeft: number;
  /** Indices of the current descriptor and entry, for error messages. */
  #descriptorAt = -1;
  #entryAt = -1;

  /** `mayHaveSurrogates`: whether texts may have lone surrogates. */
  constructor(bounds: RequestBounds, mayHaveSurrogates: boolean) {
    this.#bounds = bounds;
    this.#mayHaveSurrogates = mayHaveSurrogates;
    this.#entriesLeft = bounds.maxEntries;
  }

  read(value: unknown): RateLimitRequest {
    const members = this.#members(value, REQUEST, '');
    const domain = this.#text(members['domain'], 'domain');
    const hitsAddend = this.#uint32(members['hitsAddend'] ?? members['hits_addend'], 'hitsAddend');
    const { maxDescriptors } = this.#bounds;
    const descriptors: Descriptor[] = [];
    for (const one of this.#list(members['descriptors'], 'descriptors')) {
      if (descriptors.length === maxDescriptors) {
        return { domain, descriptors, hitsAddend, exceeded: 'descriptors' };
      }
      this.#descriptorAt = descriptors.length;
      descriptors.push(this.#descriptor(one));
      if (this.#entriesLeft < 0) return { domain, descriptors, hitsAddend, exceeded: 'entries' };
    }
    return { domain, descriptors, hitsAddend, exceeded: undefined };
  }

  /** Reads as many entries as are allowed. If there are more, {@link #entriesLeft} becomes negative. */
  #descriptor(value: unknown): Descriptor {
    const members = this.#members(value, DESCRIPTOR, '');
    const list = this.#list(members['entries'], 'entries');
    const limit = members['limit'] ?? undefined;
    const hits = members['hitsAddend'] ?? members['hits_addend'] ?? undefined;
    const isNegativeHits = members['isNegativeHits'] ?? members['is_negative_hits'] ?? false;
    if (typeof isNegativeHits !== 'boolean') {
      this.#refuse('isNegativeHits', 'expected boolean', isNegativeHits);
    }
    const read = list.slice(0, this.#entriesLeft);
    this.#entriesLeft -= list.length;
    return {
      entries: this.#entries(read),
      limit: limit === undefined ? undefined : this.#override(limit),
      hitsAddend: hits === undefined ? undefined : this.#saturatedUint64(hits, 'hitsAddend'),
      isNegativeHits,
    };
  }

  #entries(list: readonly unknown[]): Descriptor['entries'] {
    const entries = list.map((one, index) => {
      this.#entryAt = index;
      const { key, value } = this.#members(one, ENTRY, '');
      return { key: this.#text(key, 'key'), value: this.#text(value, 'value') };
    });
    this.#entryAt = -1;
    return entries;
  }

  #override(value: unknown): Descriptor['limit'] {
    const members = this.#members(value, OVERRIDE, 'limit');
    const requests = members['requestsPerUnit'] ?? members['requests_per_unit'];
    return {
      requestsPerUnit: this.#uint32(requests, 'limit.requestsPerUnit'),
      unit: this.#unit(members['unit'] ?? 0),
    };
  }

  #members(value: unknown, names: ReadonlySet<string>, field: string): Members {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.#refuse(field, 'expected object', value);
    }
    // An object that JSON.parse returned has no enumerable names but its own.
    for (const name in value) if (!names.has(name)) this.#refuse(field, `key "${name}" is unknown`);
    return value as Members;
  }

  #list(value: unknown, field: string): readonly unknown[] {
    const list = value ?? [];
    if (!Array.isArray(list)) this.#refuse(field, 'expected Array', list);
    return list;
  }

  #text(value: unknown, field: string): string {
    const text = value ?? '';
    if (typeof text !== 'string') this.#refuse(field, 'expected string', text);
    if (this.#mayHaveSurrogates && !text.isWellFormed())
      this.#refuse(field, 'a lone surrogate is not valid text');
    return text;
  }

  #uint32(value: unknown, field: string): number {
    const given = value ?? 0;
    const isNumeral = typeof given === 'string' && given !== '' && given.trim() === given;
    const number = isNumeral ? Number(given) : given;
    if (typeof number !== 'number' || !Number.isInteger(number)) {
      this.#refuse(field, 'expected number (uint32)', given);
    }
    if (number < 0 || number > UINT32_MAX) this.#refuse(field, 'out of the range of uint32', given);
    return number;
  }

  /** Returns an integer of 64 bits. Values above 2^53-1 are saturated to 2^53-1. */
  #saturatedUint64(value: unknown, field: string): number {
    const count = bigIntOf(value);
    if (count === undefined) this.#refuse(field, 'expected bigint (uint64)', value);
    if (count < 0n || count > UINT64_MAX) this.#refuse(field, 'out of the range of uint64', value);
    return Math.min(Number(count), Number.MAX_SAFE_INTEGER);
  }

  #unit(value: unknown): number {
    const number = typeof value === 'string' ? UNITS.get(value) : value;
    // Any int32 is allowed, because a proto3 enum may contain numbers without a name.
    if (typeof number !== 'number' || number !== (number | 0)) {
      this.#refuse('limit.unit', 'expected enum envoy.type.v3.RateLimitUnit', value);
    }
    return number;
  }

  /** @param field path within the current message, or '' for the message itself */
  #refuse(field: string, why: string, got?: unknown): never {
    const descriptor = this.#descriptorAt < 0 ? '' : `descriptors[${this.#descriptorAt}]`;
    const entry = this.#entryAt < 0 ? '' : `entries[${this.#entryAt}]`;
    const path = [descriptor, entry, field].filter((part) => part !== '').join('.');
    refuse(path, got === undefined ? why : `${why}, got ${shown(got)}`);
  }
}

function refuse(path: string, why: string): never {
  const where = path === '' ? 'RateLimitRequest' : `RateLimitRequest.${path}`;
  throw new DecodeError(`cannot decode ${where} from JSON: ${why}`);
}

function bigIntOf(value: unknown): bigint | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  if (value === '' || String(value).length > MAX_NUMERAL) return undefined;
  try {
    return BigInt(value);
  } catch {
    // SyntaxError and RangeError mean that the value is not an integer.
    return undefined;
  }
}

function shown(value: unknown): string {
  if (typeof value === 'string') return `"${shortened(value, MAX_SHOWN)}"`;
  if (Array.isArray(value)) return `Array(${value.length})`;
  return typeof value === 'object' && value !== null ? 'object' : String(value);
}

function shortened(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
}
