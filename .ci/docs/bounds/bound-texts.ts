import { SETTINGS } from '../../../src/server/settings/settings-table.js';

/** One thing that is bounded. */
export interface Bound {
  readonly what: string;
  /** Its value, or the setting that holds it with its default. */
  readonly bound: string;
  /** What happens beyond it. */
  readonly beyond: string;
}

/** Bounds that belong together. */
export interface BoundGroup {
  readonly title: string;
  readonly bounds: readonly Bound[];
}

/** A whole number as people read it: `10,000`. */
export function shownCount(value: number): string {
  return value.toLocaleString('en-US');
}

/** `32 MiB`, `256 KiB`, `512 bytes`. */
export function shownSize(bytes: number): string {
  if (bytes % 2 ** 20 === 0) return `${shownCount(bytes / 2 ** 20)} MiB`;
  if (bytes % 2 ** 10 === 0) return `${shownCount(bytes / 2 ** 10)} KiB`;
  return `${shownCount(bytes)} bytes`;
}

/** Milliseconds, or seconds where they are whole. */
export function shownTime(ms: number): string {
  return ms >= 1000 && ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`;
}

/** A setting with its default, as it is or as a size. */
export function shownSetting(name: string, show: (value: number) => string = shownCount): string {
  const found = SETTINGS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no setting ${name}`);
  const value = Number(found.default);
  return `\`${name}\`: ${Number.isNaN(value) ? found.default : show(value)}`;
}

export const IS_REFUSED = 'INVALID_ARGUMENT; weir stops reading';
export const IS_THROTTLED =
  'OVER_LIMIT if an active rule could have matched, regardless of `on_store_failure`; otherwise OK';
export const CONNECTION_ENDS = 'weir closes the connection';
export const SCARCE_ROOM =
  'in the upper half, a connection may use as much as is still free; the last eighth is reserved for ' +
  'connections that use nothing';
