import type { RunningBucket } from '../../limiter/running-bucket.js';
import type { KeyWords } from './key-words.js';
import { allocatedWords, chunkOf, placeOf, RecordArena, type Slot } from './record-arena.js';

/*
 * A record, in words of 8 bytes; the state of a bucket is that of RunningBucket:
 *
 *   0     1      2     3            4               5 …
 *   unit  whole  part  hash | next  info | position  words of the key
 */
const UNIT = 0;
const WHOLE = 1;
const PART = 2;
/** Index in the view of 32-bit integers. */
const HASH = 6;
const NEXT = 7;
const INFO = 8;
const POSITION = 9;
const KEY = 10;

/** Returns the number of 8-byte words of a record whose key has `keyCount` 32-bit words. */
function recordWords(keyCount: number): number {
  return (KEY + keyCount + 1) >> 1;
}

/** Returns the bytes of a record in {@link BucketRecords} whose key has `keyCount` 32-bit words ({@link KeyWords}). */
export function recordBytes(keyCount: number): number {
  return allocatedWords(recordWords(keyCount)) * 8;
}

/** The stored buckets: state, key, and positions in hash chain and expiry heap. */
export class BucketRecords {
  private readonly arena = new RecordArena();

  /** Creates a record for a key. State, chain and position must still be set. */
  create(key: KeyWords): Slot {
    const slot = this.arena.allocate(recordWords(key.count));
    const ints = this.intsOf(slot);
    const at = 2 * placeOf(slot);
    ints[at + HASH] = key.hash;
    ints[at + INFO] = key.info;
    for (let i = 0; i < key.count; i++) ints[at + KEY + i] = key.words[i] as number;
    return slot;
  }

  /** Removes a record. Returns the former slot of the record that moved to `slot`, or -1. */
  remove(slot: Slot): Slot {
    return this.arena.free(slot);
  }

  loadState(slot: Slot, bucket: RunningBucket): void {
    const doubles = this.doublesOf(slot);
    const at = placeOf(slot);
    bucket.load(doubles[at + UNIT] as number, doubles[at + WHOLE] as number, doubles[at + PART] as number);
  }

  storeState(slot: Slot, bucket: RunningBucket): void {
    const doubles = this.doublesOf(slot);
    const at = placeOf(slot);
    doubles[at + UNIT] = bucket.unit;
    doubles[at + WHOLE] = bucket.whole;
    doubles[at + PART] = bucket.part;
  }

  unitOf(slot: Slot): number {
    return this.doublesOf(slot)[placeOf(slot) + UNIT] as number;
  }

  wholeOf(slot: Slot): number {
    return this.doublesOf(slot)[placeOf(slot) + WHOLE] as number;
  }

  partOf(slot: Slot): number {
    return this.doublesOf(slot)[placeOf(slot) + PART] as number;
  }

  hashOf(slot: Slot): number {
    return this.intsOf(slot)[2 * placeOf(slot) + HASH] as number;
  }

  nextOf(slot: Slot): Slot {
    return this.intsOf(slot)[2 * placeOf(slot) + NEXT] as number;
  }

  setNext(slot: Slot, next: Slot): void {
    this.intsOf(slot)[2 * placeOf(slot) + NEXT] = next;
  }

  positionOf(slot: Slot): number {
    return this.intsOf(slot)[2 * placeOf(slot) + POSITION] as number;
  }

  setPosition(slot: Slot, position: number): void {
    this.intsOf(slot)[2 * placeOf(slot) + POSITION] = position;
  }

  bytesOf(slot: Slot): number {
    const info = this.intsOf(slot)[2 * placeOf(slot) + INFO] as number;
    const length = info >> 1;
    return recordBytes((info & 1) === 0 ? (length + 3) >> 2 : (length + 1) >> 1);
  }

  /** Returns whether the bucket at `slot` has this key. */
  isNamed(slot: Slot, key: KeyWords): boolean {
    const ints = this.intsOf(slot);
    const at = 2 * placeOf(slot);
    if (ints[at + HASH] !== key.hash || ints[at + INFO] !== key.info) return false;
    const { words, count } = key;
    for (let i = 0; i < count; i++) if (ints[at + KEY + i] !== words[i]) return false;
    return true;
  }

  private doublesOf(slot: Slot): Float64Array {
    return this.arena.doubles[chunkOf(slot)] as Float64Array;
  }

  private intsOf(slot: Slot): Int32Array {
    return this.arena.ints[chunkOf(slot)] as Int32Array;
  }
}
