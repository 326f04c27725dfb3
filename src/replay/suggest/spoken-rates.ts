type RateUnit = 'second' | 'minute' | 'hour';

/** A rate in the way that people say it, such as 90 per minute. */
export interface SpokenRate {
  readonly count: number;
  readonly unit: RateUnit;
  readonly perSecond: number;
}

const SECONDS: Readonly<Record<RateUnit, number>> = { second: 1, minute: 60, hour: 3600 };

const TENS = [10, 11, 12, 13, 15, 16, 18, 20, 22, 25, 28, 30, 35, 40, 45, 50, 55];
/** From one of the next unit to less than ten. */
const SIXTIES = [
  60, 70, 80, 90, 100, 110, 120, 130, 150, 160, 180, 200, 220, 240, 270, 300, 330, 360, 400, 450, 480, 500,
  540,
];
const HOURLY = [10, 15, 20, 30, 40, 50, 60, 75, 90, 100, 120, 150, 180, 200, 240, 300, 360, 420, 480, 540];
const HUNDREDS = [60, 70, 80, 90, 100, 110, 120, 130, 150, 160, 180, 200];
const LARGE = [
  250, 300, 400, 500, 600, 800, 1000, 1200, 1500, 2000, 3000, 5000, 10_000, 20_000, 50_000, 100_000,
];

/**
 * The rates that a suggestion can have, from the lowest to the highest. From 10 per minute to 200 per second,
 * neighbours differ by at most a sixth.
 */
export const SPOKEN_RATES: readonly SpokenRate[] = [
  ...HOURLY.map((count) => spoken(count, 'hour')),
  ...TENS.map((count) => spoken(count, 'minute')),
  ...SIXTIES.map((count) => spoken(count, 'minute')),
  ...[...TENS, ...HUNDREDS, ...LARGE].map((count) => spoken(count, 'second')),
];

/** Returns the rate in the largest unit in which its count is whole. */
function spoken(count: number, unit: RateUnit): SpokenRate {
  const larger = unit === 'hour' ? 'minute' : 'second';
  if (unit !== 'second' && count % 60 === 0) return spoken(count / 60, larger);
  return { count, unit, perSecond: count / SECONDS[unit] };
}

/** Returns how unusual a number is: 0 for 1, 2, 5, 10, 20, 50 and so on, 1 for 3, 15 or 80, and 2 for others. */
export function oddness(count: number): number {
  const digits = Number(String(count).replace(/0+$/, ''));
  if (digits === 1 || digits === 2 || digits === 5) return 0;
  return digits < 10 || digits === 12 || digits === 15 || digits === 25 ? 1 : 2;
}

const BURST_DIGITS = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100];

/** Returns the smallest number that people say, such as 12, 15 or 2500, that is at least `least`. */
export function spokenNumber(least: number): number {
  if (least <= 6) return Math.max(1, Math.ceil(least));
  const scale = 10 ** (Math.ceil(Math.log10(least)) - 2);
  const digits = BURST_DIGITS.find((number) => number * scale >= least) ?? 100;
  return Math.round(digits * scale);
}

/** Returns a number with commas between thousands. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US', { maximumFractionDigits: 0 });
}

/** Returns any rate in the largest unit in which it is at least 10: `33 per minute`. */
export function rateText(perSecond: number): string {
  for (const unit of ['second', 'minute'] as const) {
    const count = perSecond * SECONDS[unit];
    if (count >= 9.5 || (count >= 0.95 && Math.abs(count - Math.round(count)) < 0.02))
      return `${grouped(count)} per ${unit}`;
  }
  return `${grouped(perSecond * SECONDS.hour)} per hour`;
}
