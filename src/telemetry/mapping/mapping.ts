import type { GoRegExp } from '../go-regexp.js';

/** How durations are shown. */
export type ObserverOptions =
  | { readonly kind: 'histogram'; readonly buckets: readonly number[] }
  | {
      readonly kind: 'summary';
      readonly quantiles: readonly number[];
      /** Older values are forgotten, an age bucket at a time. */
      readonly maxAgeMs: number;
      readonly ageBuckets: number;
    };

export type StatKind = 'counter' | 'gauge' | 'observer';

/** One rule of a mapping file of statsd_exporter. */
export interface MappingRule {
  /** Components of a glob, `*` for any one of them; or a regular expression on the whole name. */
  readonly match: readonly string[] | GoRegExp;
  /** With `$1` for what the first `*`, or group, matched. */
  readonly name: string;
  /** Names, and texts with `$1` and so on. */
  readonly labels: readonly (readonly [name: string, template: string])[];
  /** Whether the statistic is left out. */
  readonly drop: boolean;
  /** Absent: every kind. */
  readonly kind: StatKind | undefined;
  readonly observer: ObserverOptions;
  /** Factor of every value. */
  readonly scale: number;
  /** '' for ours. */
  readonly help: string;
}

export interface Mapping {
  /** Globs are tried in this order, and then regular expressions. */
  readonly rules: readonly MappingRule[];
  /** `glob_disable_ordering`: of globs the most specific wins instead, looked at from the left. */
  readonly mostSpecificGlob: boolean;
  /** For durations that no rule is about. */
  readonly observer: ObserverOptions;
}

/** Buckets of client libraries for Prometheus, in seconds. */
export const DEFAULT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

export const DEFAULT_SUMMARY = {
  kind: 'summary',
  quantiles: [0.5, 0.9, 0.99],
  maxAgeMs: 600_000,
  ageBuckets: 5,
} as const satisfies ObserverOptions;
