/** The page is in English, so numbers and times are always formatted for English. */
export const LANGUAGE = 'en-GB';

const WHOLE = new Intl.NumberFormat(LANGUAGE, { maximumFractionDigits: 0 });
const THREE_DIGITS = new Intl.NumberFormat(LANGUAGE, { maximumSignificantDigits: 3 });
const COMPACT = new Intl.NumberFormat(LANGUAGE, { notation: 'compact', maximumSignificantDigits: 3 });
const PERCENT = new Intl.NumberFormat(LANGUAGE, { style: 'percent', maximumFractionDigits: 0 });

/** Formats a count: `1,234`. */
export function countText(count: number): string {
  return WHOLE.format(count);
}

/** Formats a count for narrow places: `1,234`, `12.3k`. */
export function shortCount(count: number): string {
  return Math.abs(count) < 10_000 ? WHOLE.format(count) : COMPACT.format(count);
}

/** Formats a rate per second: `0`, `0.05`, `12.3`, `1,230`, `12.3k`. */
export function perSecond(rate: number): string {
  if (rate === 0) return '0';
  if (Math.abs(rate) < 0.005) return '<0.01';
  if (Math.abs(rate) >= 10_000) return COMPACT.format(rate);
  return Math.abs(rate) >= 100 ? WHOLE.format(rate) : THREE_DIGITS.format(Math.round(rate * 100) / 100);
}

/** Formats a ratio: `40%`, or `over 10 times` for ratios above 10. */
export function shareText(share: number): string {
  return share > 10 ? 'over 10 times' : PERCENT.format(share);
}

/** Formats milliseconds: `0.4 ms`, `12 ms`. */
export function millisecondsText(milliseconds: number): string {
  const digits = milliseconds < 10 ? Math.round(milliseconds * 10) / 10 : Math.round(milliseconds);
  return `${digits} ms`;
}

/** Formats a count with its noun: `1 rule`, `2 rules`. */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}
