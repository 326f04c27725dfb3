import { parseRfc3339 } from '../config/read/field-values.js';
import { parseGoDuration } from '../config/yaml/go-duration.js';
import { UNIT_MICROS } from '../limiter/window-unit.js';

/** Units of durations that a log writes as plain numbers, in microseconds. */
export const DURATION_UNITS = { us: 1, ms: 1000, s: 1_000_000 } as const;

/** Length of `YYYY-MM-DDTHH:MM:`. Lines of a log mostly share it with the line before. */
const MINUTE_LENGTH = 17;
/** The seconds of a time, with up to six decimals. */
const SECONDS = /^[0-5]\d(?:\.\d{1,6})?$/;
const DECIMAL = /^\d+(?:\.\d+)?$/;
/** Smallest number of seconds that is a time, in 1973. Smaller numbers are durations, ports or status codes. */
const MIN_SECONDS = 1e8;

/** Reads the times of a log as microseconds since 1970. */
export class TimeReader {
  #minute = '';
  #minuteMicros = 0;

  /**
   * Reads an RFC 3339 time, or a number of seconds, milliseconds, microseconds or nanoseconds since 1970, which may be
   * a text. Returns undefined for any other value.
   */
  read(value: unknown): number | undefined {
    if (typeof value === 'number') return microsOfNumber(value);
    if (typeof value !== 'string') return undefined;
    if (this.#minute !== '' && value.startsWith(this.#minute)) {
      const seconds = value.slice(MINUTE_LENGTH, -1);
      if (value.endsWith('Z') && SECONDS.test(seconds))
        return this.#minuteMicros + Math.round(Number(seconds) * DURATION_UNITS.s);
    }
    const micros = parseRfc3339(value);
    if (micros === undefined) return DECIMAL.test(value) ? microsOfNumber(Number(value)) : undefined;
    if (micros < MIN_SECONDS * DURATION_UNITS.s) return undefined;
    if (value.endsWith('Z')) {
      this.#minute = value.slice(0, MINUTE_LENGTH);
      this.#minuteMicros = micros - (micros % UNIT_MICROS.minute);
    }
    return micros;
  }
}

/** The magnitude of a number since 1970 tells its unit: from 1973 on, the ranges of the units do not overlap. */
function microsOfNumber(number: number): number | undefined {
  if (!(number >= MIN_SECONDS)) return undefined;
  if (number < 1e11) return Math.round(number * DURATION_UNITS.s);
  if (number < 1e14) return Math.round(number * DURATION_UNITS.ms);
  if (number < 1e17) return Math.round(number);
  return number < 1e20 ? Math.round(number / 1000) : undefined;
}

/** `P1DT2H3M4.5S`: the days, hours, minutes and seconds of ISO 8601. */
const ISO_DURATION = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)?$/;

/**
 * Reads a duration: `400ms`, `0.4s`, `12us`, `1m2.5s`, `PT0.4S`, or a plain number of `unitMicros`. Returns whole
 * microseconds; undefined for other values, for a negative duration, and for a plain number without a unit.
 */
export function readDuration(value: unknown, unitMicros: number | undefined): number | undefined {
  if (typeof value === 'number') return microsOf(value, unitMicros);
  if (typeof value !== 'string') return undefined;
  if (DECIMAL.test(value)) return microsOf(Number(value), unitMicros);
  const iso = ISO_DURATION.exec(value);
  if (iso !== null) {
    const [, days, hours, minutes, seconds] = iso;
    if (days === undefined && hours === undefined && minutes === undefined && seconds === undefined)
      return undefined;
    const whole = (Number(days ?? 0) * 24 + Number(hours ?? 0)) * 60 + Number(minutes ?? 0);
    return microsOf(whole * 60 + Number((seconds ?? '0').replace(',', '.')), DURATION_UNITS.s);
  }
  const nanos = parseGoDuration(value);
  return nanos === undefined || nanos < 0n ? undefined : Number(nanos / 1000n);
}

function microsOf(number: number, unitMicros: number | undefined): number | undefined {
  if (unitMicros === undefined || !(number >= 0) || number === Number.POSITIVE_INFINITY) return undefined;
  return Math.round(number * unitMicros);
}
