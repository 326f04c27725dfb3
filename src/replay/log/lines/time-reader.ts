const DASH = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const COMMA = 0x2c;
const COLON = 0x3a;
const SPACE = 0x20;
const LETTER_T = 0x54;
const LETTER_Z = 0x5a;
const ZERO = 0x30;

const SECOND_MICROS = 1_000_000;
/** Length of `2026-11-27T08:30:00`. */
const ISO_LENGTH = 19;
const MAX_FRACTION_DIGITS = 9;

/**
 * Reads the times of a log: RFC 3339 as `%START_TIME%` writes it, or a number of seconds, milliseconds or microseconds
 * since 1970. The digits of the fraction tell the precision. A time without an offset is in UTC.
 */
export class TimeReader {
  /** Microseconds since 1970, if the latest text was a time. */
  micros = Number.NaN;
  /** The time is from {@link micros} up to, but not including, `micros + precisionMicros`. */
  precisionMicros = 1;
  /** Number of the latest date, 20261127, and its start. */
  #date = -1;
  #dateMicros = Number.NaN;

  /** Reads the time in a part of a text. Returns whether it is a time. */
  read(text: string, from: number, to: number): boolean {
    this.micros =
      text.charCodeAt(from + 4) === DASH && to - from >= ISO_LENGTH
        ? this.#readIso(text, from, to)
        : this.#readEpoch(text, from, to);
    // NaN, and times after the year 2255, are not safe integers.
    return Number.isSafeInteger(this.micros);
  }

  #readIso(text: string, from: number, to: number): number {
    const separator = text.charCodeAt(from + 10);
    const hours = digits(text, from + 11, 2);
    const minutes = digits(text, from + 14, 2);
    const seconds = digits(text, from + 17, 2);
    const isIso =
      (separator === LETTER_T || separator === SPACE) &&
      text.charCodeAt(from + 7) === DASH &&
      text.charCodeAt(from + 13) === COLON &&
      text.charCodeAt(from + 16) === COLON;
    // Comparisons with NaN are false. A leap second has the number 60.
    if (!isIso || !(hours <= 23 && minutes <= 59 && seconds <= 60)) return Number.NaN;
    let at = from + ISO_LENGTH;
    const mark = text.charCodeAt(at);
    let fraction = 0;
    if (at < to && (mark === DOT || mark === COMMA)) {
      const end = endOfDigits(text, at + 1, to);
      fraction = this.#fraction(text, at + 1, end);
      at = end;
    } else this.precisionMicros = SECOND_MICROS;
    const time = (hours * 60 + minutes - offsetMinutes(text, at, to)) * 60 + seconds;
    return this.#dateStart(text, from) + time * SECOND_MICROS + fraction;
  }

  /** Returns the start of the date in UTC; NaN if it does not exist. */
  #dateStart(text: string, from: number): number {
    const year = digits(text, from, 4);
    const month = digits(text, from + 5, 2);
    const day = digits(text, from + 8, 2);
    const date = (year * 100 + month) * 100 + day;
    if (date === this.#date) return this.#dateMicros;
    const start = new Date(Date.UTC(year, month - 1, day));
    const exists = start.getUTCMonth() === month - 1 && start.getUTCDate() === day && year >= 100;
    this.#date = date;
    this.#dateMicros = exists ? start.getTime() * 1000 : Number.NaN;
    return this.#dateMicros;
  }

  #readEpoch(text: string, from: number, to: number): number {
    const end = endOfDigits(text, from, to);
    const length = end - from;
    if (length < 9 || length > 16) return Number.NaN;
    const whole = digits(text, from, length);
    let fraction = 0;
    this.precisionMicros = SECOND_MICROS;
    if (end < to) {
      if (text.charCodeAt(end) !== DOT || endOfDigits(text, end + 1, to) !== to) return Number.NaN;
      fraction = this.#fraction(text, end + 1, to);
    }
    if (length < 12) return whole * SECOND_MICROS + fraction;
    const unit = length < 15 ? 1000 : 1;
    this.precisionMicros = Math.max(1, (this.precisionMicros * unit) / SECOND_MICROS);
    return whole * unit + Math.floor((fraction * unit) / SECOND_MICROS);
  }

  /** Returns the microseconds of the digits of a fraction of a second, and sets the precision. NaN for none. */
  #fraction(text: string, from: number, to: number): number {
    const length = to - from;
    if (length < 1 || length > MAX_FRACTION_DIGITS) return Number.NaN;
    const known = Math.min(length, 6);
    this.precisionMicros = 10 ** (6 - known);
    return digits(text, from, known) * this.precisionMicros;
  }
}

/** Returns the number of `count` digits; NaN if another character is among them. */
function digits(text: string, from: number, count: number): number {
  let number = 0;
  for (let at = from; at < from + count; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    number = number * 10 + digit;
  }
  return number;
}

function endOfDigits(text: string, from: number, to: number): number {
  let at = from;
  while (at < to) {
    const digit = text.charCodeAt(at) - ZERO;
    if (!(digit >= 0 && digit <= 9)) break;
    at++;
  }
  return at;
}

/** Returns the offset from UTC of `Z`, `+0100`, `-01:00` or nothing; NaN for other texts. */
function offsetMinutes(text: string, from: number, to: number): number {
  if (from === to) return 0;
  const sign = text.charCodeAt(from);
  if (sign === LETTER_Z) return to === from + 1 ? 0 : Number.NaN;
  if (sign !== PLUS && sign !== DASH) return Number.NaN;
  const colons = text.charCodeAt(from + 3) === COLON ? 1 : 0;
  if (to !== from + 5 + colons) return Number.NaN;
  const minutes = digits(text, from + 1, 2) * 60 + digits(text, from + 3 + colons, 2);
  return sign === PLUS ? minutes : -minutes;
}
