import type { LineValues, LogFormat } from './log-format.js';
import type { Incompleteness } from './sampling/sampling.js';

/** Default of {@link LogOptions.windowMicros}: one minute. */
export const WINDOW_MICROS = 60_000_000;
/** Default of {@link LogOptions.maxUnreadable}. */
export const MAX_UNREADABLE = 0.05;

/** The files of a log, and their formats. */
export interface LogOptions {
  /** Paths of files, which may be compressed; `-` is standard input. */
  readonly paths: readonly string[];
  /** The formats that the lines may have, before the built-in ones. */
  readonly formats: readonly LogFormat[];
  /** Whether the built-in formats do not count, because a user named the format. */
  readonly onlyFormats?: boolean;
  /** Longest time from the start of a request to the moment when its line is written. */
  readonly windowMicros?: number;
  /** Largest share of lines that cannot be read. */
  readonly maxUnreadable?: number;
  /** Longest time from the start of a request to weir's decision. It has no effect on logs with `decided_at`. */
  readonly slackMicros?: number;
  /** Share of the requests that the log contains, if the user named it. */
  readonly statedShare?: number;
}

/** A request of the log. */
export interface LoggedRequest {
  /**
   * Microseconds since 1970. The request was decided from {@link startMicros} up to, but not including,
   * `startMicros + precisionMicros`.
   */
  readonly startMicros: number;
  readonly precisionMicros: number;
  /** In the order of `Columns`. */
  readonly values: LineValues;
}

/** Requests in the order of their start, except late ones. */
export interface LoggedBatch {
  readonly requests: readonly LoggedRequest[];
  /** Totals up to the end of this batch. */
  readonly totals: ReadTotals;
}

/** Totals of the lines and bytes so far. */
export interface ReadTotals {
  /** Number of lines, without empty ones. */
  readonly lines: number;
  readonly requests: number;
  /** Number of requests that came too late to be sorted. */
  readonly late: number;
  /** Number of requests with a time far from all others. They have the time of the request before them. */
  readonly far: number;
  /** Number of lines that do not describe requests, such as log lines of weir between its decisions. */
  readonly skipped: number;
  readonly unreadable: readonly UnreadableLines[];
  /** Number of descriptors that end holds in weir's decision log. Requests are read without them. */
  readonly holdEnds: number;
  /** For each of `readOperators()`, whether a line had its member (OCCURS), and a value of it (HAS_VALUE). */
  readonly seen: readonly number[];
  /** Reasons why the log does not have all requests; empty if none is known. */
  readonly incomplete: readonly Incompleteness[];
  /** Bytes of the files, which may be compressed. */
  readonly bytesRead: number;
  /** Size of all files; undefined if one of them is a pipe. */
  readonly bytesTotal: number | undefined;
}

/** Lines that could not be read for the same reason. */
export interface UnreadableLines {
  /** Continues "The line …": `is not JSON`. */
  readonly reason: string;
  readonly lines: number;
  /** The first of them, without secrets: `access.log:17: {"start_time": …`. */
  readonly example: string;
}

/** The log cannot be read. The message is a sentence that names the file. */
export class LogError extends Error {}
