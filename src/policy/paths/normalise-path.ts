const SLASH = 0x2f;
const DOT = 0x2e;
const PERCENT = 0x25;
const QUESTION_MARK = 0x3f;
const HASH = 0x23;
/** Replaces bytes that are not valid UTF-8. */
const REPLACEMENT = 0xfffd;

/** Units that end a run of unchanged ones: `#`, `%`, `/` and `?`. */
const SPECIAL = new Uint8Array(0x80);
for (const unit of [HASH, PERCENT, SLASH, QUESTION_MARK]) SPECIAL[unit] = 1;

/** Values of hexadecimal digits; 16 for other characters. */
const HEX = new Uint8Array(0x80).fill(16);
for (let digit = 0; digit < 16; digit++) {
  const text = digit.toString(16);
  HEX[text.charCodeAt(0)] = digit;
  HEX[text.toUpperCase().charCodeAt(0)] = digit;
}

/** Capacity that is kept, in UTF-16 units; longer paths, which Envoy never sends, allocate for one call. */
const KEPT_UNITS = 65_536;
/** Start of the text, so that the output, which begins with a slash, never overtakes the input. */
const FIRST = 2;

/**
 * Normalizes a path in place, in one pass. Empty segments and `.` are removed, and `..` returns to the start of the
 * segment before. Each unit is therefore written once and removed at most once. Reused for one path after the other.
 */
class PathBuffer {
  private units = new Uint16Array(0);
  private bytes = Buffer.alloc(0);

  /** Returns the path that starts at `from` in the request target and ends before its query; see `normalisePath`. */
  rewrite(target: string, from: number): string {
    const end = this.read(target);
    const { units } = this;
    let hasPercent = false;
    let i = FIRST + from;
    let length = 1;
    units[0] = SLASH;
    let start = 1;
    while (i < end) {
      const unit = units[i] as number;
      if (unit >= 0x80 || SPECIAL[unit] === 0) {
        units[length++] = unit;
        i++;
      } else if (unit === SLASH) {
        length = endOfSegment(units, start, length);
        units[length++] = SLASH;
        start = length;
        i++;
      } else if (unit === PERCENT) {
        const byte = escapedByte(units, i, end);
        if (byte < 0) {
          units[length++] = PERCENT;
          i++;
        } else if (byte === SLASH) {
          // Not a separator, so it stays; in capitals, so that it has one spelling.
          units[length++] = PERCENT;
          units[length++] = 0x32;
          units[length++] = 0x46;
          i += 3;
          continue;
        } else if (byte < 0x80) {
          units[length++] = byte;
          i += 3;
        } else {
          i = decodeCharacter(units, i, end, length);
          length += (units[length] as number) >> 10 === 0xd800 >> 10 ? 2 : 1;
        }
        hasPercent ||= byte < 0 || byte === PERCENT;
      } else {
        break;
      }
    }
    // At the root, only the slash remains.
    length = Math.max(endOfSegment(units, start, length), 1);
    units[0] = SLASH;
    if (hasPercent) capitalise(units, length);
    const path = this.bytes.toString('utf16le', 0, length * 2);
    if (units.length > KEPT_UNITS) this.grow(0);
    return path;
  }

  /** Returns the end of the text. */
  private read(target: string): number {
    const end = FIRST + target.length;
    if (this.units.length < end) this.grow(Math.max(end, Math.min(end * 2, KEPT_UNITS)));
    this.bytes.write(target, FIRST * 2, 'utf16le');
    return end;
  }

  private grow(units: number): void {
    this.bytes = Buffer.alloc(units * 2);
    this.units = new Uint16Array(this.bytes.buffer, this.bytes.byteOffset, units);
  }
}

/**
 * Returns the end of the output after the segment from `start` to `length`: an empty segment or `.` is removed together
 * with its slash.
 */
function endOfSegment(units: Uint16Array, start: number, length: number): number {
  if (length - start > 2) return length;
  if (length === start) return start - 1;
  if (units[start] !== DOT) return length;
  if (length - start === 1) return start - 1;
  if (units[start + 1] !== DOT) return length;
  let end = start - 2;
  while (end >= 0 && units[end] !== SLASH) end--;
  return Math.max(end, 0);
}

/** Returns the byte of an escape at `i`; -1 if it is not an escape. */
function escapedByte(units: Uint16Array, i: number, end: number): number {
  if (i + 2 >= end) return -1;
  const high = HEX[units[i + 1] as number] ?? 16;
  const low = HEX[units[i + 2] as number] ?? 16;
  return high > 15 || low > 15 ? -1 : high * 16 + low;
}

/**
 * Writes, at `to`, the non-ASCII character that begins with the escaped byte at `i`, or U+FFFD for as many bytes as the
 * Encoding Standard replaces at once (UTF-8 decoder). Returns the start of the next one.
 */
function decodeCharacter(units: Uint16Array, i: number, end: number, to: number): number {
  const first = escapedByte(units, i, end);
  let needed = 0;
  let lower = 0x80;
  let upper = 0xbf;
  let codePoint = 0;
  if (first >= 0xc2 && first <= 0xdf) {
    needed = 1;
    codePoint = first & 0x1f;
  } else if (first >= 0xe0 && first <= 0xef) {
    needed = 2;
    codePoint = first & 0xf;
    if (first === 0xe0) lower = 0xa0;
    else if (first === 0xed) upper = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    needed = 3;
    codePoint = first & 7;
    if (first === 0xf0) lower = 0x90;
    else if (first === 0xf4) upper = 0x8f;
  } else {
    codePoint = REPLACEMENT;
  }
  let at = i + 3;
  for (; needed > 0; needed--) {
    const byte = at < end && units[at] === PERCENT ? escapedByte(units, at, end) : -1;
    if (byte < lower || byte > upper) {
      codePoint = REPLACEMENT;
      break;
    }
    codePoint = (codePoint << 6) | (byte & 0x3f);
    lower = 0x80;
    upper = 0xbf;
    at += 3;
  }
  if (codePoint <= 0xffff) {
    units[to] = codePoint;
  } else {
    units[to] = 0xd800 + ((codePoint - 0x1_0000) >> 10);
    units[to + 1] = 0xdc00 + (codePoint & 0x3ff);
  }
  return at;
}

/** Writes `%2f` in capitals, even if the escape was itself escaped. */
function capitalise(units: Uint16Array, length: number): void {
  for (let i = 2; i < length; i++) {
    if (units[i] === 0x66 && units[i - 1] === 0x32 && units[i - 2] === PERCENT) units[i] = 0x46;
  }
}

const COLON = 0x3a;

/**
 * Matches the first character that is not plain text of a segment. A search takes half the time of a loop over the
 * characters.
 */
const NOT_PLAIN = /\/[/.]|[?#%]/;

/** Shared by all requests; no state remains between them. */
const buffer = new PathBuffer();

/**
 * Returns the normal form of a request target's path, so that no spelling gets around a rule. Query and fragment are
 * removed. Escapes are decoded once, except `%2F`, which is not a separator, and invalid escapes. Dot segments are
 * resolved (RFC 3986, 5.2.4), and repeated and trailing slashes removed. The result begins with `/` and is
 * case-sensitive. Takes one pass over the target.
 */
export function normalisePath(target: string): string {
  const end = normalEnd(target);
  if (end >= 0) return end === target.length ? target : target.slice(0, end);
  return buffer.rewrite(target, pathStart(target));
}

/**
 * Returns the end of the path of a target that needs only its query or last slash removed, as most do. Returns -1 for
 * others, and for possible dot segments.
 */
function normalEnd(target: string): number {
  if (target.charCodeAt(0) !== SLASH) return -1;
  let end = target.search(NOT_PLAIN);
  if (end < 0) {
    end = target.length;
  } else {
    const unit = target.charCodeAt(end);
    if (unit !== QUESTION_MARK && unit !== HASH) return -1;
  }
  return end > 1 && target.charCodeAt(end - 1) === SLASH ? end - 1 : end;
}

/** Returns the start of the path: the absolute form of a target (RFC 9112, 3.2.2) begins with scheme and authority. */
function pathStart(target: string): number {
  if (!isLetter(target.charCodeAt(0))) return 0;
  let i = 1;
  while (i < target.length && isOfScheme(target.charCodeAt(i))) i++;
  if (target.charCodeAt(i) !== COLON || !target.startsWith('//', i + 1)) return 0;
  for (i += 3; i < target.length; i++) {
    const unit = target.charCodeAt(i);
    if (unit === SLASH || unit === QUESTION_MARK || unit === HASH) break;
  }
  return i;
}

function isLetter(unit: number): boolean {
  const lower = unit | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

/** Returns whether a unit is a letter, digit, `+`, `-` or `.`. */
function isOfScheme(unit: number): boolean {
  return isLetter(unit) || (unit >= 0x30 && unit <= 0x39) || unit === 0x2b || unit === 0x2d || unit === DOT;
}
