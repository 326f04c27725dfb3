const TIMESTAMP =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/**
 * Reads a timestamp of RFC 3339, section 5.6, as microseconds since the epoch. Smaller fractions are dropped. Returns
 * undefined for other text, including times without a zone and dates that do not exist.
 */
export function parseRfc3339(text: string): number | undefined {
  const match = TIMESTAMP.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour, offsetMinute] = match;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  // A date that does not exist rolls over into the next month.
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  if (Number(offsetHour ?? 0) > 23 || Number(offsetMinute ?? 0) > 59) return undefined;
  const minutesEast = (Number(offsetHour ?? 0) * 60 + Number(offsetMinute ?? 0)) * (sign === '-' ? -1 : 1);
  const seconds =
    date.getTime() / 1000 + Number(hour) * 3600 + Number(minute) * 60 + Number(second) - minutesEast * 60;
  return seconds * 1_000_000 + Number(fraction.padEnd(6, '0').slice(0, 6));
}
