import type { IdentityPart, LiveControl } from '../../limiter/control.js';
import type { Entry } from '../../limiter/entry.js';
import { EXCEEDED, type MatchWork } from '../../policy/match-work.js';
import { sha256Hex } from '../../policy/names/sha256.js';

/**
 * Maximum number of key sets in the controls of one domain. With as many, a descriptor needs 64 lookups, and one more
 * for each further key of a set whose first value matches.
 */
export const MAX_KEY_SETS = 64;

/** Steps (MatchWork) to look up a value, to hash one, and for each of its UTF-16 units. */
const LOOKUP_STEPS = 10;
const DIGEST_STEPS = 400;
const DIGEST_UNIT_STEPS = 0.5;

/** Controls with the same keys, as a tree with one level for each key. */
interface KeySet {
  readonly name: string;
  readonly keys: readonly Pick<IdentityPart, 'key' | 'secret'>[];
  readonly root: Branch;
}

interface Branch {
  readonly next: Map<string, Branch>;
  /** Controls with these values, on the last level only: a block, an exemption, or both. */
  controls: readonly LiveControl[];
}

function emptyBranch(): Branch {
  return { next: new Map(), controls: [] };
}

/** Returns the name of the key set of an identity. */
function keySetName(identity: readonly IdentityPart[]): string {
  return JSON.stringify(identity.map(({ key, secret }) => [key, secret]));
}

/**
 * The controls of one domain. The cost of a lookup depends on the number of key sets, not of controls. A descriptor
 * with several values under one key costs more, within the bounds of MatchWork.
 */
export class DomainControls {
  /** Number of blocks. */
  blocks = 0;
  readonly #monotonicMicros: () => number;
  readonly #keySets = new Map<string, KeySet>();
  /** Key sets by their first key. */
  readonly #byKey = new Map<string, KeySet[]>();

  constructor(monotonicMicros: () => number) {
    this.#monotonicMicros = monotonicMicros;
  }

  get isEmpty(): boolean {
    return this.#keySets.size === 0;
  }

  hasRoomFor(identity: readonly IdentityPart[]): boolean {
    return this.#keySets.size < MAX_KEY_SETS || this.#keySets.has(keySetName(identity));
  }

  add(control: LiveControl): void {
    const { identity, kind } = control;
    const [first] = identity;
    // A control without an identity would apply to every caller; the API does not allow one.
    if (first === undefined) return;
    const name = keySetName(identity);
    let keySet = this.#keySets.get(name);
    if (keySet === undefined) {
      keySet = { name, keys: identity.map(({ key, secret }) => ({ key, secret })), root: emptyBranch() };
      this.#keySets.set(name, keySet);
      const keySets = this.#byKey.get(first.key);
      if (keySets === undefined) this.#byKey.set(first.key, [keySet]);
      else keySets.push(keySet);
    }
    let branch = keySet.root;
    for (const { value } of identity) {
      let next = branch.next.get(value);
      if (next === undefined) {
        next = emptyBranch();
        branch.next.set(value, next);
      }
      branch = next;
    }
    branch.controls = [...branch.controls, control];
    if (kind === 'block') this.blocks++;
  }

  remove({ id, identity, kind }: LiveControl): void {
    const keySet = this.#keySets.get(keySetName(identity));
    if (keySet === undefined) return;
    const path: Branch[] = [keySet.root];
    for (const { value } of identity) {
      const next = path.at(-1)?.next.get(value);
      if (next === undefined) return;
      path.push(next);
    }
    const last = path.at(-1) as Branch;
    last.controls = last.controls.filter((other) => other.id !== id);
    if (kind === 'block') this.blocks--;
    for (let at = path.length - 1; at > 0; at--) {
      const { next, controls } = path[at] as Branch;
      if (next.size > 0 || controls.length > 0) return;
      path[at - 1]?.next.delete((identity[at - 1] as IdentityPart).value);
    }
    if (keySet.root.next.size === 0) this.#forget(keySet);
  }

  /**
   * Returns the active control for a descriptor with these entries, after `derive`. A block takes precedence over an
   * exemption, and a later end over an earlier one. Returns EXCEEDED if `work` is exhausted.
   */
  find(entries: readonly Entry[], work: MatchWork): LiveControl | undefined | typeof EXCEEDED {
    let search: Search | undefined;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as Entry;
      const keySets = this.#byKey.get(entry.key);
      if (keySets === undefined) continue;
      search ??= new Search(entries, work, this.#monotonicMicros);
      for (let at = 0; at < keySets.length; at++) {
        const keySet = keySets[at] as KeySet;
        if (!search.follow(keySet, keySet.root, 0, entry.value)) return EXCEEDED;
      }
    }
    return search?.found;
  }

  #forget({ name, keys }: KeySet): void {
    this.#keySets.delete(name);
    const key = keys[0]?.key ?? '';
    const remaining = (this.#byKey.get(key) ?? []).filter((other) => other.name !== name);
    if (remaining.length > 0) this.#byKey.set(key, remaining);
    else this.#byKey.delete(key);
  }
}

/** A search for the controls of one descriptor. */
class Search {
  found: LiveControl | undefined;
  private readonly entries: readonly Entry[];
  private readonly work: MatchWork;
  private readonly monotonicMicros: () => number;
  private nowMicros: number | undefined;
  private valuesByKey: Map<string, Set<string>> | undefined;
  private digests: Map<string, string> | undefined;

  constructor(entries: readonly Entry[], work: MatchWork, monotonicMicros: () => number) {
    this.entries = entries;
    this.work = work;
    this.monotonicMicros = monotonicMicros;
  }

  /** Continues below `branch` with a value of the key on that level; returns false if the work budget is exhausted. */
  follow(keySet: KeySet, branch: Branch, level: number, value: string): boolean {
    if (!this.work.spend(LOOKUP_STEPS)) return false;
    const storedValue = keySet.keys[level]?.secret === true ? this.digest(value) : value;
    if (storedValue === undefined) return false;
    const next = branch.next.get(storedValue);
    if (next === undefined) return true;
    const nextKey = keySet.keys[level + 1];
    if (nextKey === undefined) {
      for (const control of next.controls) this.consider(control);
      return true;
    }
    const values = this.valuesOf(nextKey.key);
    if (values === undefined) return false;
    for (const other of values) if (!this.follow(keySet, next, level + 1, other)) return false;
    return true;
  }

  private consider(control: LiveControl): void {
    this.nowMicros ??= this.monotonicMicros();
    if (control.expiresAtMicros <= this.nowMicros) return;
    const { found } = this;
    if (found === undefined || (found.kind === 'allow' && control.kind === 'block')) this.found = control;
    else if (found.kind === control.kind && control.expiresAtMicros > found.expiresAtMicros)
      this.found = control;
  }

  /** Returns the values under a key; undefined if the work budget is exhausted. */
  private valuesOf(key: string): Iterable<string> | undefined {
    if (this.valuesByKey === undefined) {
      if (!this.work.spend(this.entries.length * LOOKUP_STEPS)) return undefined;
      this.valuesByKey = new Map();
      for (const entry of this.entries) {
        const values = this.valuesByKey.get(entry.key);
        if (values === undefined) this.valuesByKey.set(entry.key, new Set([entry.value]));
        else values.add(entry.value);
      }
    }
    return this.valuesByKey.get(key) ?? [];
  }

  /** Returns the SHA-256 of a value in hexadecimal digits; undefined if the work budget is exhausted. */
  private digest(value: string): string | undefined {
    this.digests ??= new Map();
    let digest = this.digests.get(value);
    if (digest === undefined) {
      if (!this.work.spend(DIGEST_STEPS + value.length * DIGEST_UNIT_STEPS)) return undefined;
      digest = sha256Hex(value);
      this.digests.set(value, digest);
    }
    return digest;
  }
}
