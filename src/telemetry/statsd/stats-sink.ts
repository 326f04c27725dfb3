/**
 * Where statistics are sent once in an interval. Nothing here blocks or throws: what cannot be sent is dropped and
 * counted.
 */
export interface StatsSink {
  /** A word for metrics and logs. */
  readonly name: string;
  /** Lines that were lost. */
  readonly dropped: number;
  counter(name: string, delta: number): void;
  gauge(name: string, value: number): void;
  /** One duration of a sample; `rate` is the share of all that is told. */
  timer(name: string, millis: number, rate: number): void;
  /** What was told may be sent. */
  flush(): void;
  /** Sends what is left, within about a second, and lets go of the socket. */
  close(): Promise<void>;
}

export type SinkLog = (level: 'info' | 'warn', message: string) => void;

/** Most characters that may wait for a collector that is away or slow. */
export const MAX_WAITING = 8 * 1024 * 1024;

/** How long the last lines may take to be sent at the end of the process. */
export const CLOSE_MS = 1000;

/** Milliseconds with what a microsecond clock knows behind the point. */
export function millisText(millis: number): string {
  return String(Math.round(millis * 1000) / 1000);
}

/** `|@0.25`, or nothing for the whole. */
export function rateText(rate: number): string {
  return rate >= 1 ? '' : `|@${Number(rate.toPrecision(6))}`;
}

/** What ends a tag's name or value on the wire, and control characters, which end a line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not pass
const ENDS_NAME = /[:|=\u0000-\u0020\u007f]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not pass
const ENDS_VALUE = /[.:|\u0000-\u001f\u007f]/g;

/**
 * EXTRA_TAGS as the reference sends them: in the order of their names, characters that end a name on the wire replaced,
 * those without name or value left out.
 */
export function extraTags(tags: ReadonlyMap<string, string>): readonly (readonly [string, string])[] {
  return [...tags]
    .filter(([name, value]) => name !== '' && value !== '')
    .map(([name, value]) => [name.replaceAll(ENDS_NAME, '_'), value.replaceAll(ENDS_VALUE, '_')] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1));
}
