import { quantity } from '../../quantity.js';
import type { Affected, Interval } from './report.js';

/** Reports are in English, so numbers are always formatted for English. */
const COUNT = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 });

/** Returns a number for people: `1,204`. */
export function countText(count: number): string {
  return COUNT.format(count);
}

/** Returns a number with its noun: `1,204 requests`. */
export function counted(count: number, one: string, many: string): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** Returns an interval for people: `9–12`, or `9` if both ends are equal. */
export function intervalText({ least, most }: Interval): string {
  return rangeText(countText(least), countText(most));
}

/** Returns a share for people: `13%`, `3.8%`, `<0.1%`. Only exact shares are shown as 0% and 100%. */
export function shareText(share: number): string {
  if (share > 0 && share < 0.001) return '<0.1%';
  if (share > 0.999 && share < 1) return '>99.9%';
  const percent = share * 100;
  const digits = percent < 10 || (percent > 99 && percent < 100) ? 10 : 1;
  return `${countText(Math.round(percent * digits) / digits)}%`;
}

/** Returns which share of some requests is newly denied: `3.8–4%`. */
export function lostShare({ requests, newlyDenied }: Pick<Affected, 'requests' | 'newlyDenied'>): string {
  if (requests === 0) return '–';
  return rangeText(shareText(newlyDenied.least / requests), shareText(newlyDenied.most / requests));
}

function rangeText(least: string, most: string): string {
  if (least === most) return least;
  return least.endsWith('%') && most.endsWith('%') ? `${least.slice(0, -1)}–${most}` : `${least}–${most}`;
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

/** Returns a duration in words, with at most two units: `40 seconds`, `5 hours 4 minutes`. */
export function durationText(seconds: number): string {
  if (seconds > 0 && seconds < 1) return 'less than a second';
  // As secondsText of the table does.
  let rest = Math.ceil(seconds - 0.001);
  const first = UNITS.findIndex(([, size]) => rest >= size);
  const parts = UNITS.slice(first, first + 2).flatMap(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? [] : [quantity(count, unit)];
  });
  return first === -1 ? '0 seconds' : parts.join(' ');
}
