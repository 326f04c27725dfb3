/** The page is in English, and so are its numbers and times, wherever it is read. */
export const LANGUAGE = 'en-GB';

const WHOLE = new Intl.NumberFormat(LANGUAGE, { maximumFractionDigits: 0 });
const THREE_DIGITS = new Intl.NumberFormat(LANGUAGE, { maximumSignificantDigits: 3 });
const COMPACT = new Intl.NumberFormat(LANGUAGE, { notation: 'compact', maximumSignificantDigits: 3 });
const PERCENT = new Intl.NumberFormat(LANGUAGE, { style: 'percent', maximumFractionDigits: 0 });

/** A count: `1,234`. */
export function countText(count: number): string {
  return WHOLE.format(count);
}

/** A count for narrow places: `1,234`, `12.3k`. */
export function shortCount(count: number): string {
  return Math.abs(count) < 10_000 ? WHOLE.format(count) : COMPACT.format(count);
}

/** Something per second: `0`, `0.05`, `12.3`, `1,230`, `12.3k`. */
export function perSecond(rate: number): string {
  if (rate === 0) return '0';
  if (Math.abs(rate) < 0.005) return '<0.01';
  if (Math.abs(rate) >= 10_000) return COMPACT.format(rate);
  return Math.abs(rate) >= 100 ? WHOLE.format(rate) : THREE_DIGITS.format(Math.round(rate * 100) / 100);
}

/** A share: `40%`, and `more than 10 times` for what is far beyond. */
export function shareText(share: number): string {
  return share > 10 ? 'over 10 times' : PERCENT.format(share);
}

/** Milliseconds: `0.4 ms`, `12 ms`. */
export function millisecondsText(milliseconds: number): string {
  const digits = milliseconds < 10 ? Math.round(milliseconds * 10) / 10 : Math.round(milliseconds);
  return `${digits} ms`;
}

/** `1 rule`, `2 rules`. */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}
