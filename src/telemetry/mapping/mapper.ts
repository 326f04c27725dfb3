import { GoRegExp } from '../go-regexp.js';
import type { Mapping, MappingRule, ObserverOptions, StatKind } from './mapping.js';

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
