import type { GoRegExp } from '../go-regexp.js';

/** Representation of durations. */
export type ObserverOptions =
  | { readonly kind: 'histogram'; readonly buckets: readonly number[] }
  | {
      readonly kind: 'summary';
      readonly quantiles: readonly number[];
      /** Milliseconds after which values expire, one age bucket at a time. */
      readonly maxAgeMs: number;
      readonly ageBuckets: number;
    };

export type StatKind = 'counter' | 'gauge' | 'observer';

/** A rule of a mapping file of statsd_exporter. */
export interface MappingRule {
  /** Components of a glob, in which `*` matches any component, or a regular expression for the whole name. */
  readonly match: readonly string[] | GoRegExp;
  /** May contain `$1` for the text of the first `*` or group. */
  readonly name: string;
  /** Names, and templates with `$1` and so on. */
  readonly labels: readonly (readonly [name: string, template: string])[];
  /** Whether the statistic is dropped. */
  readonly drop: boolean;
  /** Undefined for every kind. */
  readonly kind: StatKind | undefined;
  readonly observer: ObserverOptions;
  /** Factor of all values. */
  readonly scale: number;
  /** '' for weir's default help text. */
  readonly help: string;
}

export interface Mapping {
  /** Rules. Globs are tried in this order, followed by regular expressions. */
  readonly rules: readonly MappingRule[];
  /** `glob_disable_ordering`: the most specific glob matches, compared from the left. */
  readonly mostSpecificGlob: boolean;
  /** For durations without a rule. */
  readonly observer: ObserverOptions;
}

/** Default buckets of Prometheus client libraries, in seconds. */
export const DEFAULT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

export const DEFAULT_SUMMARY = {
  kind: 'summary',
  quantiles: [0.5, 0.9, 0.99],
  maxAgeMs: 600_000,
  ageBuckets: 5,
} as const satisfies ObserverOptions;
