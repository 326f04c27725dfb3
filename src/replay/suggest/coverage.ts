import { quantity } from '../../quantity.js';

const HOUR_MICROS = 3600e6;
const WEEK_HOURS = 168;
const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const;
/** The first day of 1970 was a Thursday. */
const FIRST_HOUR = 72;

/** The span of a log, and the hours of the week (UTC) in which it has requests. */
export class Coverage {
  firstMicros = Number.POSITIVE_INFINITY;
  lastMicros = Number.NEGATIVE_INFINITY;
  readonly #hours = new Uint8Array(WEEK_HOURS);

  observe(micros: number): void {
    if (micros < this.firstMicros) this.firstMicros = micros;
    if (micros > this.lastMicros) this.lastMicros = micros;
    this.#hours[(Math.floor(micros / HOUR_MICROS) + FIRST_HOUR) % WEEK_HOURS] = 1;
  }

  get spanMicros(): number {
    return Math.max(0, this.lastMicros - this.firstMicros);
  }

  /** Returns the hours of the week without requests, such as `Mon-Fri 00:00-06:00; Sat-Sun all day`, or ''. */
  unseen(): string {
    const days = DAYS.map((name, i) => ({
      name,
      hours: unseenHours(this.#hours.subarray(24 * i, 24 * i + 24)),
    }));
    const runs: { first: string; last: string; hours: string }[] = [];
    for (const { name, hours } of days) {
      const run = runs.at(-1);
      if (run?.hours === hours) run.last = name;
      else runs.push({ first: name, last: name, hours });
    }
    return runs
      .filter(({ hours }) => hours !== '')
      .map(({ first, last, hours }) => `${first === last ? first : `${first}-${last}`} ${hours}`)
      .join('; ');
  }
}

function unseenHours(seen: Uint8Array): string {
  if (!seen.includes(1)) return 'all day';
  const ranges: string[] = [];
  for (let hour = 0; hour < 24; hour++) {
    if (seen[hour] === 1) continue;
    const seenAgain = seen.indexOf(1, hour);
    const end = seenAgain < 0 ? 24 : seenAgain;
    ranges.push(`${clockText(hour)}-${clockText(end)}`);
    hour = end;
  }
  return ranges.join(', ');
}

function clockText(hour: number): string {
  return `${String(hour).padStart(2, '0')}:00`;
}

/** Returns a time as `2026-11-02 08:15 UTC`. */
export function minuteText(micros: number): string {
  return `${new Date(micros / 1000).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** Returns a duration in the largest unit in which it has two digits or is whole: `36 hours`, `7 days`. */
export function durationText(micros: number): string {
  const minutes = Math.max(1, Math.round(micros / 60e6));
  if (minutes < 120) return quantity(minutes, 'minute');
  const hours = Math.round(minutes / 60);
  return hours < 72 ? quantity(hours, 'hour') : quantity(Math.round(hours / 24), 'day');
}
