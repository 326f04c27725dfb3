import type { Entry } from '../../limiter/entry.js';
import { EXCEEDED, type MatchWork } from '../match-work.js';
import { sha256Hex } from '../names/sha256.js';
import type { DeriveRule } from './derive-rule.js';
import { RuleIndex } from './rule-index.js';

/** One compiled item of `derive`: turns the entries of a descriptor into those that are matched. */
export type DeriveStep = TableStep | RuleStep;

/** What an API key that is in no table becomes: `sha256:` and its digest, a bucket of its own. */
export const UNKNOWN_KEY_PREFIX = 'sha256:';

/** Most API keys whose tenant is remembered, to save the digest; forgotten all at once, and with every reload. */
const MAX_CACHED_KEYS = 1000;
/** Longer values are not worth the memory. */
const MAX_CACHED_KEY_LENGTH = 256;
/** Steps that a digest takes, but for the bytes. */
const DIGEST_STEPS = 500;

/**
 * `sha256`: the source entry becomes the tenant that owns the API key. Of several entries with that key the first
 * counts and the others are dropped: a second key sent along must not lead past the limits.
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

  /** The entries that are matched instead; what a digest takes is bounded by `work`. */
  apply(entries: readonly Entry[], work: MatchWork): readonly Entry[] | typeof EXCEEDED {
    if (!work.spend(entries.length)) return EXCEEDED;
    let derived: Entry[] | undefined;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as Entry;
      if (entry.key !== this.source) derived?.push(entry);
      else if (derived === undefined) {
        derived = entries.slice(0, i);
        const tenant = this.tenantOf(entry.value, work);
        if (tenant === EXCEEDED) return EXCEEDED;
        derived.push({ key: this.entry, value: tenant });
      }
    }
    return derived ?? entries;
  }

  private tenantOf(apiKey: string, work: MatchWork): string | typeof EXCEEDED {
    const isShort = apiKey.length <= MAX_CACHED_KEY_LENGTH;
    const known = isShort ? this.remembered.get(apiKey) : undefined;
    if (known !== undefined) return known;
    const bytes = isShort ? apiKey.length : Buffer.byteLength(apiKey);
    if (!work.spend(DIGEST_STEPS + bytes)) return EXCEEDED;
    const digest = sha256Hex(apiKey);
    const tenant = this.table.get(digest) ?? UNKNOWN_KEY_PREFIX + digest;
    if (isShort) {
      if (this.remembered.size >= MAX_CACHED_KEYS) this.remembered.clear();
      this.remembered.set(apiKey, tenant);
    }
    return tenant;
  }
}

/** `rules`: the source entries together become one entry, named by the first rule that fits. */
export class RuleStep {
  readonly kind = 'rules';
  readonly entry: string;
  readonly sources: readonly string[];
  private readonly added: DeriveRule[] = [];
  private readonly index: RuleIndex;

  /** `rules` may be added later, too. */
  constructor(entry: string, sources: readonly string[], rules: readonly DeriveRule[] = []) {
    this.entry = entry;
    this.sources = sources;
    this.index = new RuleIndex(sources.length);
    for (const rule of rules) this.add(rule);
  }

  /** In file order. */
  get rules(): readonly DeriveRule[] {
    return this.added;
  }

  /** Adds a rule behind all others. */
  add(rule: DeriveRule): void {
    this.added.push(rule);
    this.index.add(rule);
  }

  apply(entries: readonly Entry[], work: MatchWork): readonly Entry[] | typeof EXCEEDED {
    // Looking for the sources, and leaving them out.
    if (!work.spend(1 + ((entries.length * this.sources.length) >> 1))) return EXCEEDED;
    const values = this.sourceValues(entries);
    if (values === undefined) return entries;
    const rule = this.firstRule(values, work);
    if (rule === undefined || rule === EXCEEDED) return rule ?? entries;
    return work.spend(entries.length * (1 + this.sources.length))
      ? this.replaceSources(entries, rule.value)
      : EXCEEDED;
  }

  /**
   * Values of the sources, in their order; of several entries with one key the first counts. Undefined if one is
   * missing.
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

  /** The first rule that fits the values of the sources; see {@link RuleIndex}. */
  firstRule(values: readonly string[], work: MatchWork): DeriveRule | undefined | typeof EXCEEDED {
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
