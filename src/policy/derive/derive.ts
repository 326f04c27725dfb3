import type { Entry } from '../../limiter/entry.js';
import type { MatchWork } from '../match-work.js';
import { sha256Hex } from '../redact.js';
import { type DeriveRule, RuleIndex } from './rule-index.js';

/** A compiled item of `derive`, which derives entries from the entries of a descriptor. */
export type DeriveStep = TableStep | RuleStep;

/** Prefix of the derived value of an unknown API key, before its digest; each has its own bucket. */
export const UNKNOWN_KEY_PREFIX = 'sha256:';

/**
 * Maximum number of API keys whose tenants are cached, which saves the digest. All are removed at once, and with every
 * reload.
 */
const MAX_CACHED_KEYS = 1000;
/** Maximum length of cached API keys; longer ones are not worth the memory. */
const MAX_CACHED_KEY_LENGTH = 256;

/**
 * Step `sha256`: replaces the source entry by the tenant of the API key. If several entries have that key, the first
 * one counts and the others are dropped, so that a second key cannot get around the limits.
 */
export class TableStep {
  readonly kind = 'table';
  readonly entry: string;
  readonly source: string;
  /** Tenants by the SHA-256 of their API keys, in lower case hexadecimal digits. */
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
    const isShort = apiKey.length <= MAX_CACHED_KEY_LENGTH;
    const known = isShort ? this.remembered.get(apiKey) : undefined;
    if (known !== undefined) return known;
    const digest = sha256Hex(apiKey);
    const tenant = this.table.get(digest) ?? UNKNOWN_KEY_PREFIX + digest;
    if (isShort) {
      if (this.remembered.size >= MAX_CACHED_KEYS) this.remembered.clear();
      this.remembered.set(apiKey, tenant);
    }
    return tenant;
  }
}

/** Step `rules`: replaces the source entries by one entry, whose value is that of the first matching rule. */
export class RuleStep {
  readonly kind = 'rules';
  readonly entry: string;
  readonly sources: readonly string[];
  private readonly added: DeriveRule[] = [];
  private readonly index: RuleIndex;

  /** Rules can be added later as well. */
  constructor(entry: string, sources: readonly string[], rules: readonly DeriveRule[] = []) {
    this.entry = entry;
    this.sources = sources;
    this.index = new RuleIndex(sources.length);
    for (const rule of rules) this.add(rule);
  }

  /** The rules in file order. */
  get rules(): readonly DeriveRule[] {
    return this.added;
  }

  /** Adds a rule after all others. */
  add(rule: DeriveRule): void {
    this.added.push(rule);
    this.index.add(rule);
  }

  /** Returns the derived entries, which mean nothing if `work` is exceeded. */
  apply(entries: readonly Entry[], work: MatchWork): readonly Entry[] {
    const values = this.sourceValues(entries);
    if (values === undefined) return entries;
    const rule = this.firstRule(values, work);
    return rule === undefined ? entries : this.replaceSources(entries, rule.value);
  }

  /**
   * Returns the values of the sources, in their order; the first one of several entries with one key. Undefined if a
   * source is missing.
   */
  sourceValues(entries: readonly Entry[]): readonly string[] | undefined {
    const values: string[] = [];
    for (let i = 0; i < this.sources.length; i++) {
      const value = firstValue(entries, this.sources[i] as string);
      if (value === undefined) return undefined;
      values.push(value);
    }
    return values;
  }

  firstRule(values: readonly string[], work: MatchWork): DeriveRule | undefined {
    return this.index.find(values, work);
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

function firstValue(entries: readonly Entry[], key: string): string | undefined {
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as Entry;
    if (entry.key === key) return entry.value;
  }
  return undefined;
}
