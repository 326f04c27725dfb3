import type { ReferenceStats } from '../reference/reference-stats.js';

/** Where a sink sends to, and the tags of all statistics. */
export interface SinkTarget {
  readonly host: string;
  readonly port: number;
  readonly tags: readonly (readonly [string, string])[];
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

/** Maximum number of characters that wait for a slow or unavailable collector. */
export const MAX_WAITING = 8 * 1024 * 1024;

/** Maximum milliseconds for sending the last lines at exit. */
export const CLOSE_MS = 1000;

/** A name as it is sent, and its tags: `|#tag:value,…`, or ''. */
export interface Encoded {
  readonly name: string;
  readonly tags: string;
}

/**
 * A receiver of statistics, once per interval, as lines of the statsd protocol. No method blocks or throws. Lines that
 * cannot be sent are dropped and counted.
 */
export abstract class StatsSink {
  /** Name in metrics and logs. */
  abstract readonly name: string;
  dropped = 0;

  counter(name: string, delta: number): void {
    this.#add(name, `${delta}|c`);
  }

  gauge(name: string, value: number): void {
    this.#add(name, `${value}|g`);
  }

  /** Adds one duration of a sample. `rate` is the fraction of durations that are in the sample. */
  timer(name: string, millis: number, rate: number): void {
    this.#add(name, `${millisText(millis)}|ms${rateText(rate)}`);
  }

  #add(name: string, value: string): void {
    const encoded = this.encode(name);
    this.add(`${encoded.name}:${value}${encoded.tags}`);
  }

  protected abstract encode(name: string): Encoded;
  /** Adds a line without its end. */
  protected abstract add(line: string): void;
  /** Allows the sink to send what it got. */
  abstract flush(): void;
  /** Sends the remaining lines, within about a second, and closes the socket. */
  abstract close(): Promise<void>;
}

function millisText(millis: number): string {
  return String(Math.round(millis * 1000) / 1000);
}

/** Formats a sampling rate: `|@0.25`, or '' for a rate of 1. */
function rateText(rate: number): string {
  return rate >= 1 ? '' : `|@${Number(rate.toPrecision(6))}`;
}

/** Characters that end a tag's name or value on the wire, and control characters, which end a line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not pass
const ENDS_NAME = /[:|=\u0000-\u0020\u007f]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not pass
const ENDS_VALUE = /[.:|\u0000-\u001f\u007f]/g;

/**
 * Returns EXTRA_TAGS as the reference sends them: sorted by name, with characters that end a name on the wire replaced,
 * and without tags that lack a name or a value.
 */
export function extraTags(tags: ReadonlyMap<string, string>): readonly (readonly [string, string])[] {
  return [...tags]
    .filter(([name, value]) => name !== '' && value !== '')
    .map(([name, value]) => [name.replaceAll(ENDS_NAME, '_'), value.replaceAll(ENDS_VALUE, '_')] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Passes the increases of counters, the gauges and the durations to sinks, which send them asynchronously. */
export function flushStats(stats: ReferenceStats, sinks: readonly StatsSink[]): void {
  const sendDelta = (name: string, delta: number): void => {
    for (const sink of sinks) sink.counter(name, delta);
  };
  for (const series of stats.takeSeries()) series.takeDeltas(sendDelta);
  for (const [name, value] of stats.gauges()) for (const sink of sinks) sink.gauge(name, value);
  for (const durations of stats.allDurations()) {
    const { samples, count } = durations.takeSamples();
    const rate = samples.length / count;
    for (const millis of samples) for (const sink of sinks) sink.timer(durations.name, millis, rate);
  }
  for (const sink of sinks) sink.flush();
}
