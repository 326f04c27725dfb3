import { GoRegExp } from '../go-regexp.js';
import type { Mapping, MappingRule, ObserverOptions, StatKind } from './mapping.js';

/** What a statistic is for Prometheus. */
export interface MappedStat {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly scale: number;
  readonly help: string;
  readonly observer: ObserverOptions;
}

/**
 * Any letter, digit or `_` of ASCII stays, and a digit in front gets a `_` before it; everything else becomes `_`, as
 * statsd_exporter escapes.
 */
export function escapeMetricName(name: string): string {
  // Of several hyphens one after the other only the first leaves a trace.
  const escaped = name.replaceAll(/-+/g, '-').replaceAll(/[^a-zA-Z0-9_]/gu, '_');
  return /^\d/.test(escaped) ? `_${escaped}` : escaped;
}

/** What one kind of rule puts in the place of `$1`: what was matched, by number from 1 and by name. */
type Captures = (reference: string) => string;

/** `$1` and `${1}` by what was matched; `$$`, in regular expressions, by a dollar; what was not matched by nothing. */
function fillIn(template: string, captures: Captures): string {
  if (!template.includes('$')) return template;
  return template.replaceAll(/\$(?:\{(\w+)\}|(\w+)|(\$))/g, (_all, braced, bare, dollar) =>
    dollar === undefined ? captures(String(braced ?? bare)) : '$',
  );
}

/**
 * Maps statistics to metrics as statsd_exporter does
 * (https://github.com/prometheus/statsd_exporter#metric-mapping-and-configuration).
 */
export class Mapper {
  readonly #mapping: Mapping;
  /** By number of components, in the order in which they are tried. */
  readonly #globs = new Map<number, MappingRule[]>();
  readonly #patterns: MappingRule[] = [];

  constructor(mapping: Mapping) {
    this.#mapping = mapping;
    for (const rule of inOneOrder(mapping.rules)) {
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
   * Undefined where a rule says that the statistic is left out. A statistic that no rule is about keeps its name,
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
    const mapped = escapeMetricName(fillIn(rule.name, captures));
    if (mapped === '') return undefined;
    const labels = Object.fromEntries(
      rule.labels.map(([label, template]) => [label, fillIn(template, captures)]),
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
 * Rules with the same labels name them in one order, that of the first of them: they may add to one series, and a
 * series is known by its text, to other processes, too.
 */
function inOneOrder(rules: readonly MappingRule[]): readonly MappingRule[] {
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

/** Of two globs of one length the one that names a component first, from the left, is tried first. */
function bySpecificity(one: MappingRule, other: MappingRule): number {
  const [a, b] = [one.match as readonly string[], other.match as readonly string[]];
  for (let at = 0; at < a.length; at++) {
    if ((a[at] === '*') !== (b[at] === '*')) return a[at] === '*' ? 1 : -1;
  }
  return 0;
}
