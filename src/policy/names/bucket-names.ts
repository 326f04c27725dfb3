import type { Entry } from '../../limiter/entry.js';
import { nodeOfClasses } from '../class-nodes.js';
import type { PlanNodes } from '../plans/plan-nodes.js';
import type { NamedBucket, PolicyNode } from '../policy-node.js';
import { type BucketKey, boundedKey, extendedKey, fits, textPart } from './bucket-key.js';
import { requestStatName } from './stat-name.js';

/**
 * Number of cached names; a power of two. A larger cache would be slower: 10,000 names used in turn are so far apart in
 * memory that reading one takes longer than building it.
 */
const CACHE_SLOTS = 2048;
/** Maximum total length of a cached name's values, in UTF-16 units; others are built each time. */
const MAX_CACHED_UNITS = 256;
/** Number of units at the end of a value that select the slot; most values differ there. */
const HASHED_UNITS = 8;
/** FNV's 32-bit prime. */
const HASH_PRIME = 0x0100_0193;

/** A cached name of `leaf` with the values that it depends on. */
class CachedName implements NamedBucket {
  readonly node: PolicyNode;
  readonly keys: readonly string[];
  readonly hashTagLength: number;
  readonly statNames: readonly string[];
  private readonly leaf: PolicyNode;
  private readonly values: readonly string[];

  constructor(leaf: PolicyNode, values: readonly string[], name: NamedBucket) {
    this.leaf = leaf;
    this.values = values;
    this.node = name.node;
    this.keys = name.keys;
    this.hashTagLength = name.hashTagLength;
    this.statNames = name.statNames;
  }

  /** Returns whether this is the name of `entries` at `leaf`. */
  isOf(leaf: PolicyNode, entries: readonly Entry[]): boolean {
    if (this.leaf !== leaf) return false;
    const { bucketAndPlanEntries: nameEntries } = leaf;
    for (let i = 0; i < nameEntries.length; i++) {
      if (this.values[i] !== (entries[nameEntries[i] as number] as Entry).value) return false;
    }
    return true;
  }
}

/**
 * Builds and caches the names of one domain's buckets (bucket-key.ts). Building one is cheap, but a new string must
 * also be flattened and hashed before a store finds it, which costs more than the rest of a lookup. A name includes the
 * limits of the customer, because a row in a large table of plans is rarely in the processor's cache.
 *
 * A name can be in two adjacent slots, which its hash selects. It is cached at once if one is free. If both are taken,
 * it replaces another name only after two consecutive misses. A million tenants that each send rarely therefore leave a
 * full cache mostly unchanged, and cause no work for the garbage collector. Node and values are compared completely, so
 * colliding values only slow down the requests of their sender.
 */
export class BucketNames {
  private readonly domain: string;
  private readonly domainPart: string;
  private readonly secretKeys: ReadonlySet<string>;
  private readonly planNodes: PlanNodes | undefined;
  private readonly slots: (CachedName | undefined)[] = new Array<CachedName | undefined>(CACHE_SLOTS).fill(
    undefined,
  );

  /** The hash of each name in {@link slots}, so that a lookup reads no object of another name. */
  private readonly hashes = new Int32Array(CACHE_SLOTS);
  /** The hash of the last miss, by slot. */
  private readonly lastMissed = new Int32Array(CACHE_SLOTS);

  /** Values of `secretKeys` are never part of a statistic's name. */
  constructor(domain: string, secretKeys: ReadonlySet<string>, planNodes: PlanNodes | undefined) {
    this.domain = domain;
    this.secretKeys = secretKeys;
    this.planNodes = planNodes;
    this.domainPart = textPart(domain);
  }

  /** Returns the bucket of entries that matched `leaf`, one entry for each node of the path. */
  bucketOf(leaf: PolicyNode, entries: readonly Entry[]): NamedBucket {
    const { bucketAndPlanEntries: nameEntries } = leaf;
    if (nameEntries.length === 0) {
      leaf.fixedBucket ??= this.build(leaf, entries);
      return leaf.fixedBucket;
    }
    let hash = leaf.id;
    let units = 0;
    for (let i = 0; i < nameEntries.length; i++) {
      const { value } = entries[nameEntries[i] as number] as Entry;
      units += value.length;
      if (units > MAX_CACHED_UNITS) return this.build(leaf, entries);
      hash = hashEnd(value, hash);
    }
    const slot = (hash ^ (hash >>> 16)) & (CACHE_SLOTS - 1);
    const { slots, hashes } = this;
    const at = hashes[slot] === hash ? slot : slot ^ 1;
    const found = hashes[at] === hash ? slots[at] : undefined;
    if (found?.isOf(leaf, entries)) return found;
    const built = this.build(leaf, entries);
    if (slots[slot] === undefined) this.cache(slot, hash, leaf, entries, built);
    else if (slots[slot ^ 1] === undefined) this.cache(slot ^ 1, hash, leaf, entries, built);
    else if (this.lastMissed[slot] === hash) this.cache(slot, hash, leaf, entries, built);
    else this.lastMissed[slot] = hash;
    return built;
  }

  private cache(
    slot: number,
    hash: number,
    leaf: PolicyNode,
    entries: readonly Entry[],
    name: NamedBucket,
  ): void {
    const values = leaf.bucketAndPlanEntries.map((index) => (entries[index] as Entry).value);
    this.hashes[slot] = hash;
    this.slots[slot] = new CachedName(leaf, values, name);
  }

  /** Builds the name from the last entry to the first, because nodes only know their parents. */
  private build(end: PolicyNode, entries: readonly Entry[]): NamedBucket {
    const planned = this.planNodes?.of(end, entries) ?? end;
    if (planned.classEntry >= 0) return this.buildOfClasses(planned, entries);
    const leaf = planned;
    let node = leaf;
    const [only] = leaf.rules;
    // Nearly all nodes have one rule.
    const suffix = only !== undefined && leaf.rules.length === 1 ? only.bucketSuffix : undefined;
    let rest = suffix ?? '';
    for (let i = entries.length - 1; i > 0; i--) {
      rest = node.keyPart((entries[i] as Entry).value) + rest;
      node = node.parent as PolicyNode;
    }
    const tag = this.domainPart + node.keyPart((entries[0] as Entry).value);
    const key = tag + rest;
    const keys =
      suffix !== undefined && fits(key)
        ? [key]
        : keysOf(leaf, boundedKey(tag, rest.slice(0, rest.length - (suffix ?? '').length)));
    return { node: leaf, keys, hashTagLength: tag.length, statNames: this.statNamesOf(leaf, entries) };
  }

  /** Builds the names for a node some of whose limits have classes. All their names have the same tag. */
  private buildOfClasses(node: PolicyNode, entries: readonly Entry[]): NamedBucket {
    const leaf = nodeOfClasses(node, entries);
    const path = leaf.path();
    let hashTagLength = 0;
    const keys = leaf.rules.map(({ priorities, bucketSuffix }) => {
      const omitted = priorities === undefined ? -1 : leaf.classEntry;
      const parts = path.map((one, i) => one.keyPart(i === omitted ? undefined : entries[i]?.value));
      const tag = this.domainPart + parts[0];
      hashTagLength = tag.length;
      return extendedKey(boundedKey(tag, parts.slice(1).join('')), bucketSuffix).key;
    });
    return { node: leaf, keys, hashTagLength, statNames: this.statNamesOf(leaf, entries) };
  }

  private statNamesOf(leaf: PolicyNode, entries: readonly Entry[]): readonly string[] {
    if (leaf.statNames !== undefined) return leaf.statNames;
    const name = requestStatName(
      this.domain,
      leaf.path(),
      entries,
      leaf.fields.detailedMetric,
      this.secretKeys,
    );
    return leaf.rules.map((rule) => name + rule.statSuffix);
  }
}

function keysOf({ rules }: PolicyNode, name: BucketKey): readonly string[] {
  return rules.map((rule) => extendedKey(name, rule.bucketSuffix).key);
}

function hashEnd(value: string, seed: number): number {
  let hash = Math.imul(seed ^ value.length, HASH_PRIME);
  for (let at = Math.max(0, value.length - HASHED_UNITS); at < value.length; at++) {
    hash = Math.imul(hash ^ value.charCodeAt(at), HASH_PRIME);
  }
  return hash;
}
