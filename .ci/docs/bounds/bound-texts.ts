import { SETTINGS } from '../../../src/server/settings/settings-table.js';

/** A row of the table. */
export interface Bound {
  /** The bounded work, memory or number. */
  readonly what: string;
  /** The maximum, or the setting for the maximum with its default. */
  readonly bound: string;
  /** Effect if the maximum is exceeded. */
  readonly beyond: string;
}

/** A section of the table. */
export interface BoundGroup {
  readonly title: string;
  readonly bounds: readonly Bound[];
}

/** Returns a number with thousands separators: `10,000`. */
export function shownCount(value: number): string {
  return value.toLocaleString('en-US');
}

/** Returns a size with its unit: `32 MiB`, `256 KiB` or `512 bytes`. */
export function shownSize(bytes: number): string {
  if (bytes % 2 ** 20 === 0) return `${shownCount(bytes / 2 ** 20)} MiB`;
  if (bytes % 2 ** 10 === 0) return `${shownCount(bytes / 2 ** 10)} KiB`;
  return `${shownCount(bytes)} bytes`;
}

/** Returns a duration in milliseconds, or in seconds if it is a whole number of seconds. */
export function shownTime(ms: number): string {
  return ms >= 1000 && ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`;
}

/** Returns a setting with its default, formatted by `show`. */
export function shownSetting(name: string, show: (value: number) => string = shownCount): string {
  const found = SETTINGS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`the setting ${name} does not exist`);
  const value = Number(found.default);
  return `\`${name}\`: ${Number.isNaN(value) ? found.default : show(value)}`;
}

export const IS_REFUSED = 'INVALID_ARGUMENT; weir stops decoding the request';
export const IS_THROTTLED =
  'OVER_LIMIT if an active rule could have matched, regardless of `on_store_failure`; otherwise OK';
export const CONNECTION_ENDS = 'weir closes the connection';
export const SHARED_FAIRLY = '[shared fairly](#bounds)';
