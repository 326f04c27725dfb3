import type { Entry } from '../limiter/rule.js';
import { normalisePath } from './normalise-path.js';
import type { PathPattern } from './path-pattern.js';
import { sha256Hex } from './sha256.js';

/** One compiled item of `derive`: turns the entries of a descriptor into those that are matched. */
export type DeriveStep = TableStep | RuleStep;

/** What an API key that is in no table becomes: `sha256:` and its digest, a bucket of its own. */
export const UNKNOWN_KEY_PREFIX = 'sha256:';

/** Most API keys whose tenant is remembered, to save the digest; forgotten all at once, and with every reload. */
const MAX_REMEMBERED = 1000;
/** Longer values are not worth the memory. */
const MAX_REMEMBERED_LENGTH = 256;

/**
 * `sha256`: the source entry becomes the tenant that owns the API key. Of several entries with that key the first counts and
 * the others are dropped: a second key sent along must not lead past the limits.
 */
export class TableStep {
  readonly kind = 'table';
  readonly entry: string;
  readonly source: string;
  /** SHA-256 of an API key, lower case hex, to its tenant. */
  readonly table: ReadonlyMap<string, string>;
  private readonly remembered = new Map<string, string>();

  constructor(entry: string, source: string, table: ReadonlyMap<string, string>) {
    this.entry = entry;
    this.source = source;
    this.table = table;
  }

  get size(): number {
    return this.table.size;
  }

  apply(entries: readonly Entry[]): readonly Entry[] {
    let derived: Entry[] | undefined;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as Entry;
      if (entry.key !== this.source) derived?.push(entry);
      else if (derived === undefined) {
        derived = entries.slice(0, i);
        derived.push({ key: this.entry, value: this.tenantOf(entry.value) });
      }
    }
    return derived ?? entries;
  }

  private tenantOf(apiKey: string): string {
    const known = this.remembered.get(apiKey);
    if (known !== undefined) return known;
    const digest = sha256Hex(apiKey);
    const tenant = this.table.get(digest) ?? UNKNOWN_KEY_PREFIX + digest;
    if (apiKey.length <= MAX_REMEMBERED_LENGTH) {
      if (this.remembered.size >= MAX_REMEMBERED) this.remembered.clear();
      this.remembered.set(apiKey, tenant);
    }
    return tenant;
  }
}

/** What a rule asks of one source: the exact value, or a path that matches. Undefined: anything. */
export type DeriveCondition = string | PathPattern | undefined;

export interface DeriveRule {
  /** In the order of the step's sources. */
  readonly conditions: readonly DeriveCondition[];
  /** Value of the new entry. */
  readonly value: string;
}

/** `rules`: the source entries together become one entry, named by the first rule that fits. */
export class RuleStep {
  readonly kind = 'rules';
  readonly entry: string;
  readonly sources: readonly string[];
  readonly rules: readonly DeriveRule[];

  constructor(entry: string, sources: readonly string[], rules: readonly DeriveRule[]) {
    this.entry = entry;
    this.sources = sources;
    this.rules = rules;
  }

  apply(entries: readonly Entry[]): readonly Entry[] {
    const values = this.sourceValues(entries);
    if (values === undefined) return entries;
    const rule = this.firstRule(values);
    return rule === undefined ? entries : this.replaceSources(entries, rule.value);
  }

  /** Values of the sources, in their order; of several entries with one key the first counts. Undefined if one is missing. */
  sourceValues(entries: readonly Entry[]): readonly string[] | undefined {
    const values: string[] = [];
    for (let i = 0; i < this.sources.length; i++) {
      const value = firstValue(entries, this.sources[i] as string);
      if (value === undefined) return undefined;
      values.push(value);
    }
    return values;
  }

  firstRule(values: readonly string[]): DeriveRule | undefined {
    const paths: string[] = [];
    for (let i = 0; i < this.rules.length; i++) {
      const rule = this.rules[i] as DeriveRule;
      if (fits(rule.conditions, values, paths)) return rule;
    }
    return undefined;
  }

  private replaceSources(entries: readonly Entry[], value: string): readonly Entry[] {
    const derived: Entry[] = [];
    let placed = false;
    for (const entry of entries) {
      if (!this.sources.includes(entry.key)) {
        derived.push(entry);
      } else if (!placed) {
        derived.push({ key: this.entry, value });
        placed = true;
      }
    }
    return derived;
  }
}

/** Whether every condition holds. `paths` keeps the normal form of each value, made once it is needed. */
function fits(conditions: readonly DeriveCondition[], values: readonly string[], paths: string[]): boolean {
  for (let i = 0; i < conditions.length; i++) {
    const condition = conditions[i];
    const value = values[i] as string;
    if (condition === undefined) continue;
    if (typeof condition === 'string') {
      if (condition !== value) return false;
    } else {
      paths[i] ??= normalisePath(value);
      if (!condition.matches(paths[i] as string)) return false;
    }
  }
  return true;
}

function firstValue(entries: readonly Entry[], key: string): string | undefined {
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as Entry;
    if (entry.key === key) return entry.value;
  }
  return undefined;
}
