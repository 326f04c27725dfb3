import { invariant } from '../../runtime/invariant.js';
import type { Slot } from './record-arena.js';

const CHUNK_BITS = 13;
const CHUNK_MASK = (1 << CHUNK_BITS) - 1;
const FIRST_CHAINS = 16;

/** The records of a {@link KeyIndex}. Each stores its hash, and the next record of its chain. */
export interface ChainedRecords<Key> {
  hashOf(slot: Slot): number;
  nextOf(slot: Slot): Slot;
  setNext(slot: Slot, next: Slot): void;
  isNamed(slot: Slot, key: Key): boolean;
}

/**
 * Finds records by key with linear hashing (Litwin 1980). There is one chain per record on average. Each further
 * insertion splits one chain in two, so that growth never rehashes the whole table. The records themselves form the
 * chains, and removed records leave no tombstones. The number of chains never shrinks, and each takes four bytes.
 */
export class KeyIndex<Key extends { readonly hash: number }> {
  private readonly records: ChainedRecords<Key>;
  /** First record of each chain, or -1, in chunks. */
  private readonly heads: Int32Array[] = [];
  private chains = 0;
  /** Chains below `chains - (mask + 1)` are split already, and their records use one more bit of the hash. */
  private mask = FIRST_CHAINS - 1;
  private count = 0;

  constructor(records: ChainedRecords<Key>) {
    this.records = records;
    while (this.chains < FIRST_CHAINS) this.addChain();
  }

  get size(): number {
    return this.count;
  }

  /** -1 if there is none. */
  find(key: Key): Slot {
    const { records } = this;
    let slot = this.head(this.chainOf(key.hash));
    while (slot >= 0 && !records.isNamed(slot, key)) slot = records.nextOf(slot);
    return slot;
  }

  /** Adds a record whose key is not in the index. */
  insert(slot: Slot): void {
    if (this.count++ >= this.chains) this.split();
    const chain = this.chainOf(this.records.hashOf(slot));
    this.records.setNext(slot, this.head(chain));
    this.setHead(chain, slot);
  }

  /** Removes a record, which must still be readable. */
  remove(slot: Slot): void {
    this.count--;
    this.relink(slot, slot, this.records.nextOf(slot));
  }

  /** Records that the record `from` has moved to `to`, where it is readable. */
  moved(from: Slot, to: Slot): void {
    this.relink(from, to, to);
  }

  /** Replaces the link to `slot` by `replacement`; `readable` is the slot from which the hash can be read. */
  private relink(slot: Slot, readable: Slot, replacement: Slot): void {
    const { records } = this;
    const chain = this.chainOf(records.hashOf(readable));
    let at = this.head(chain);
    if (at === slot) {
      this.setHead(chain, replacement);
      return;
    }
    for (let next = records.nextOf(at); next !== slot; next = records.nextOf(at)) {
      invariant(next >= 0, 'a record is in the chain of its hash');
      at = next;
    }
    records.setNext(at, replacement);
  }

  private chainOf(hash: number): number {
    const extendedIndex = hash & (2 * this.mask + 1);
    return extendedIndex < this.chains ? extendedIndex : hash & this.mask;
  }

  private split(): void {
    const { records } = this;
    const from = this.chains - (this.mask + 1);
    const to = this.addChain();
    let slot = this.head(from);
    let stay = -1;
    let movedHead = -1;
    while (slot >= 0) {
      const next = records.nextOf(slot);
      if ((records.hashOf(slot) & (this.mask + 1)) === 0) {
        records.setNext(slot, stay);
        stay = slot;
      } else {
        records.setNext(slot, movedHead);
        movedHead = slot;
      }
      slot = next;
    }
    this.setHead(from, stay);
    this.setHead(to, movedHead);
    if (this.chains === 2 * (this.mask + 1)) this.mask = 2 * this.mask + 1;
  }

  private addChain(): number {
    const chain = this.chains++;
    if ((chain & CHUNK_MASK) === 0) this.heads.push(new Int32Array(CHUNK_MASK + 1).fill(-1));
    return chain;
  }

  private head(chain: number): Slot {
    return (this.heads[chain >> CHUNK_BITS] as Int32Array)[chain & CHUNK_MASK] as number;
  }

  private setHead(chain: number, slot: Slot): void {
    (this.heads[chain >> CHUNK_BITS] as Int32Array)[chain & CHUNK_MASK] = slot;
  }
}
