import type { LabelMeanings } from '../families.js';
import { GoRegExp } from '../go-regexp.js';

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

/** A statistic as a Prometheus metric. */
export interface MappedStat {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly scale: number;
  readonly help: string;
  readonly observer: ObserverOptions;
}

/**
 * Escapes a name like statsd_exporter: ASCII letters, digits and `_` stay, other characters become `_`, and a leading
 * digit gets a `_` prefix.
 */
export function escapeMetricName(name: string): string {
  // A sequence of hyphens becomes a single `_`.
  const escaped = name.replaceAll(/-+/g, '-').replaceAll(/[^a-zA-Z0-9_]/gu, '_');
  return /^\d/.test(escaped) ? `_${escaped}` : escaped;
}

/** Returns the text for a reference such as `$1`, by number from 1 or by name. */
type Captures = (reference: string) => string;

/**
 * Replaces `$1` and `${1}` by the captured strings, or by '' without a capture. In regular expressions, `$$` becomes a
 * dollar sign.
 */
function substitute(template: string, captures: Captures): string {
  if (!template.includes('$')) return template;
  return template.replaceAll(/\$(?:\{(\w+)\}|(\w+)|(\$))/g, (_all, braced, bare, dollar) =>
    dollar === undefined ? captures(String(braced ?? bare)) : '$',
  );
}

/**
 * Maps statistics to metrics like statsd_exporter
 * (https://github.com/prometheus/statsd_exporter#metric-mapping-and-configuration).
 */
export class Mapper {
  readonly #mapping: Mapping;
  /** Globs by number of components, in the order in which they are tried. */
  readonly #globs = new Map<number, MappingRule[]>();
  readonly #patterns: MappingRule[] = [];

  constructor(mapping: Mapping) {
    this.#mapping = mapping;
    for (const rule of unifyLabelOrder(mapping.rules)) {
      if (rule.match instanceof GoRegExp) {
        this.#patterns.push(rule);
        continue;
      }
      const sameLength = this.#globs.get(rule.match.length);
      if (sameLength === undefined) this.#globs.set(rule.match.length, [rule]);
      else sameLength.push(rule);
    }
    if (mapping.mostSpecificGlob) for (const rules of this.#globs.values()) rules.sort(bySpecificity);
  }

  /**
   * Returns the metric of a statistic, or undefined if a rule drops it. A statistic without a rule keeps its name,
   * escaped.
   */
  map(name: string, kind: StatKind): MappedStat | undefined {
    const found = this.#byGlob(name, kind) ?? this.#byPattern(name, kind);
    if (found === undefined) {
      const { observer } = this.#mapping;
      return { name: escapeMetricName(name), labels: {}, scale: 1, help: '', observer };
    }
    const { rule, captures } = found;
    if (rule.drop) return undefined;
    const mapped = escapeMetricName(substitute(rule.name, captures));
    if (mapped === '') return undefined;
    const labels = Object.fromEntries(
      rule.labels.map(([label, template]) => [label, substitute(template, captures)]),
    );
    return { name: mapped, labels, scale: rule.scale, help: rule.help, observer: rule.observer };
  }

  #byGlob(name: string, kind: StatKind): { rule: MappingRule; captures: Captures } | undefined {
    const components = name.split('.');
    const rule = this.#globs
      .get(components.length)
      ?.find(
        (one) =>
          (one.kind ?? kind) === kind &&
          (one.match as readonly string[]).every((part, at) => part === '*' || part === components[at]),
      );
    if (rule === undefined) return undefined;
    const match = rule.match as readonly string[];
    const captured = components.filter((_component, at) => match[at] === '*');
    return { rule, captures: (reference) => captured[Number(reference) - 1] ?? '' };
  }

  #byPattern(name: string, kind: StatKind): { rule: MappingRule; captures: Captures } | undefined {
    for (const rule of this.#patterns) {
      if ((rule.kind ?? kind) !== kind) continue;
      const match = (rule.match as GoRegExp).exec(name);
      if (match === null) continue;
      const captures: Captures = (reference) =>
        (/^\d+$/.test(reference) ? match[Number(reference)] : match.groups?.[reference]) ?? '';
      return { rule, captures };
    }
    return undefined;
  }
}

/**
 * Gives rules with the same labels the same label order, that of the first rule. They may add to the same series, which
 * its text identifies, also in other processes.
 */
function unifyLabelOrder(rules: readonly MappingRule[]): readonly MappingRule[] {
  const orders = new Map<string, readonly string[]>();
  return rules.map((rule) => {
    const names = rule.labels.map(([name]) => name);
    const set = JSON.stringify([...names].sort());
    const order = orders.get(set) ?? names;
    orders.set(set, order);
    const labels = [...rule.labels].sort(([one], [other]) => order.indexOf(one) - order.indexOf(other));
    return { ...rule, labels };
  });
}

/** Compares two globs of the same length. The glob whose first literal component is further left is tried first. */
function bySpecificity(one: MappingRule, other: MappingRule): number {
  const [a, b] = [one.match as readonly string[], other.match as readonly string[]];
  for (let at = 0; at < a.length; at++) {
    if ((a[at] === '*') !== (b[at] === '*')) return a[at] === '*' ? 1 : -1;
  }
  return 0;
}

const RULE_STATS = ['near_limit', 'over_limit', 'total_hits', 'within_limit', 'shadow_mode'];

export const MAPPED_LABELS: LabelMeanings = {
  domain: { meaning: "The policy's domain." },
  key1: { meaning: 'The first level of the rule: its key, or `key_value`.' },
  key2: { meaning: 'The second level of the rule, if it has one. Deeper levels are omitted.' },
  err_type: {
    meaning: 'The cause.',
    values: { redis_error: 'Redis', service_error: 'an invalid request, or no policy was loaded' },
  },
  grpc_method: { meaning: 'The method, such as `ShouldRateLimit` or `Check`.' },
};

const PLAIN = {
  drop: false,
  kind: undefined,
  observer: { kind: 'histogram', buckets: DEFAULT_BUCKETS },
  scale: 1,
  help: '',
} as const;

function glob(match: string, rule: Pick<MappingRule, 'name'> & Partial<MappingRule>): MappingRule {
  return { ...PLAIN, labels: [], ...rule, match: match.split('.') };
}

/**
 * Returns the default mapping of the reference: rules by domain and up to two keys (deeper keys are part of the
 * second), errors by `err_type`, and calls by `grpc_method`. With `millis`, response times stay in milliseconds, as in
 * older versions of the reference.
 */
export function defaultMapping(millis: boolean): Mapping {
  const rules: MappingRule[] = RULE_STATS.map((stat) =>
    glob(`ratelimit.service.rate_limit.*.*.${stat}`, {
      name: `ratelimit_service_rate_limit_${stat}`,
      labels: [
        ['domain', '$1'],
        ['key1', '$2'],
      ],
    }),
  );
  for (const stat of RULE_STATS) {
    // The pattern matches up to the end of the name. In the reference, over_limit_with_local_cache is also added to
    // over_limit, which already includes it.
    rules.push({
      ...PLAIN,
      match: new GoRegExp(
        `^ratelimit\\.service\\.rate_limit\\.([^.]*)\\.([^.]*)\\.([^.]*)(\\..*)?\\.${stat}$`,
      ),
      name: `ratelimit_service_rate_limit_${stat}`,
      labels: [
        ['domain', '$1'],
        ['key1', '$2'],
        ['key2', '$3'],
      ],
    });
  }
  const counter = { kind: 'counter' } as const;
  rules.push(
    glob('ratelimit.service.call.should_rate_limit.*', {
      ...counter,
      name: 'ratelimit_service_should_rate_limit_error',
      labels: [['err_type', '$1']],
    }),
    glob('ratelimit_server.*.total_requests', {
      ...counter,
      name: 'ratelimit_service_total_requests',
      labels: [['grpc_method', '$1']],
    }),
    glob('ratelimit_server.*.response_time', {
      name: 'ratelimit_service_response_time_seconds',
      scale: millis ? 1 : 0.001,
      labels: [['grpc_method', '$1']],
    }),
    glob('ratelimit.service.config_load_success', {
      ...counter,
      name: 'ratelimit_service_config_load_success',
    }),
    glob('ratelimit.service.config_load_error', { ...counter, name: 'ratelimit_service_config_load_error' }),
  );
  return { rules, mostSpecificGlob: false, observer: DEFAULT_SUMMARY };
}
