import type { Clock } from '../../limiter/clock.js';
import type { RunningBucket } from '../../limiter/running-bucket.js';
import { invariant } from '../../runtime/invariant.js';
import { ExpiryHeap } from './expiry-heap.js';
import { KeyIndex } from './key-index.js';
import { KeyWords } from './key-words.js';
import { allocatedWords, chunkOf, placeOf, RecordArena, type Slot } from './record-arena.js';

/** Bounds of a {@link BucketTable}, and its clock. */
export interface BucketTableOptions {
  /** The wall time of this clock determines when windows end. */
  readonly clock: Clock;
  /** Maximum number of buckets. */
  readonly maxBuckets: number;
  /** Maximum bytes, as estimated by {@link bucketBytes}. */
  readonly maxBytes: number;
  /** Bytes that something else uses of `maxBytes`; 0 by default. */
  readonly otherBytes?: () => number;
}

/**
 * Bytes of a bucket in addition to its record: hash chain (4), heap entry (12), and a share of partly filled chunks.
 */
const INDEX_BYTES = 24;
/**
 * Number of expired or outdated heap entries that are checked for each write, so that idle buckets are removed without
 * a timer.
 */
const SWEEP_PER_WRITE = 4;
/** Number of writes after which they are checked, because a busy bucket would otherwise be checked at each write. */
const WRITES_PER_SWEEP = 16;
/**
 * Maximum number of heap entries that an eviction checks; it evicts the soonest of them. The times in the heap are only
 * lower bounds, because a take does not update them. An exact search could therefore mean checking all entries.
 */
const MAX_EVICTION_SCAN = 64;

/**
 * Maximum number of lookups that are kept from the read to the write, and for the next request: the default of
 * MAX_LIMITS. The remaining items share one. A lookup takes 1 to 2 KiB.
 */
const MAX_CACHED_LOOKUPS = 256;

/** A key, also in words, and the slot of its record; -1 without a record. */
interface CachedLookup {
  key: string;
  readonly words: KeyWords;
  found: Slot;
  /** Value of {@link BucketTable.changes} at the lookup. After a later change, the slot may be wrong. */
  changes: number;
}

/** Returns the estimated bytes of one bucket: one byte per character, or two in a key with a character beyond ASCII. */
export function bucketBytes(key: string): number {
  const words = new KeyWords();
  words.load(key);
  return recordBytes(words.count) + INDEX_BYTES;
}

/**
 * Buckets by key, stored in chunks of plain bytes. The garbage collector does not visit each bucket, and the table
 * grows without copying an array. If the table is full, it evicts the bucket that will be full soonest, or the window
 * that will end soonest.
 */
export class BucketTable {
  /** Number of buckets evicted before they were full, since start. */
  evictions = 0;
  bytes = 0;
  private readonly options: BucketTableOptions;
  /**
   * One lookup for each item of a request. A write follows the read of the same key, and consecutive requests often use
   * the same keys.
   */
  private readonly lookups: CachedLookup[] = [newLookup(new KeyWords())];
  /** The latest lookup. */
  private lookup = this.lookups[0] as CachedLookup;
  /** Number of times that records were created, removed or moved. */
  private changes = 0;
  /** Number of times that records were removed or moved, and its value at the latest {@link read}. */
  private moves = 0;
  private movesAtRead = 0;
  private writesSinceSweep = 0;
  private readonly records = new BucketRecords();
  private readonly index = new KeyIndex<KeyWords>(this.records);
  private readonly heap = new ExpiryHeap(this.records);

  constructor(options: BucketTableOptions) {
    this.options = options;
  }

  get size(): number {
    return this.index.size;
  }

  /**
   * Loads the state stored under `key`; a missing key loads a blank state. `place` is the item's index in the request,
   * a hint for {@link write}. Returns the slot of the bucket, or -1 if it is not stored. Two keys of one request never
   * have the same slot.
   */
  read(key: string, bucket: RunningBucket, place: number): Slot {
    const slot = this.find(key, place);
    this.movesAtRead = this.moves;
    if (slot < 0) bucket.load(0, 0, 0);
    else this.records.loadState(slot, bucket);
    return slot;
  }

  /**
   * Stores a state, or removes the bucket if it is blank. `tokenMicros` is monotonic time and never decreases from call
   * to call. `read` is the result of {@link read} for this key, or -1; it must be newer than the latest write of
   * another request.
   */
  write(key: string, bucket: RunningBucket, place: number, tokenMicros: number, read: Slot = -1): void {
    const { records, heap } = this;
    let slot = read >= 0 && this.moves === this.movesAtRead ? read : this.find(key, place);
    if (bucket.isBlank(tokenMicros)) {
      if (slot >= 0) this.drop(slot);
      return;
    }
    if (slot < 0) {
      slot = this.claim(tokenMicros);
      records.storeState(slot, bucket);
      heap.push(slot, this.expiryOf(slot, tokenMicros));
    } else {
      const before = records.wholeOf(slot);
      const mayBeSooner =
        bucket.unit < 0 || bucket.unit !== records.unitOf(slot) || bucket.wholeMicros <= before;
      records.storeState(slot, bucket);
      // A later time is corrected when the entry reaches the top. A sooner time, after a refund or with another limit,
      // must be stored now.
      if (mayBeSooner) {
        const expiry = this.expiryOf(slot, tokenMicros);
        if (expiry < heap.keyOf(slot)) heap.update(slot, expiry);
      }
    }
    if (++this.writesSinceSweep >= WRITES_PER_SWEEP) this.sweep(tokenMicros);
  }

  /** Returns the hash of a key, whose secret callers do not know. `place` is the item's index in the request. */
  hashOf(key: string, place: number): number {
    this.find(key, place);
    return this.lookup.words.hash;
  }

  private find(key: string, place: number): Slot {
    const at = this.placeAt(Math.min(place, MAX_CACHED_LOOKUPS));
    this.lookup = at;
    if (at.key !== key || at.changes !== this.changes) {
      at.key = key;
      at.words.load(key);
      at.found = this.index.find(at.words);
      at.changes = this.changes;
    }
    return at.found;
  }

  private placeAt(place: number): CachedLookup {
    while (this.lookups.length <= place) {
      this.lookups.push(newLookup((this.lookups[0] as CachedLookup).words.emptyCopy()));
    }
    return this.lookups[place] as CachedLookup;
  }

  /** Returns the time after which the bucket can be removed, on the clock of token buckets. */
  private expiryOf(slot: Slot, tokenMicros: number): number {
    const unit = this.records.unitOf(slot);
    const whole = this.records.wholeOf(slot);
    // A window in the future (the wall clock stepped back) does not apply now, but is kept until its end.
    if (unit < 0) return tokenMicros + (whole - unit - this.options.clock.wallMicros());
    return this.records.partOf(slot) > 0 ? whole + 1 : whole;
  }

  private sweep(tokenMicros: number): void {
    this.writesSinceSweep = 0;
    for (let looks = 0; looks < SWEEP_PER_WRITE * WRITES_PER_SWEEP; looks++) {
      if (this.heap.size === 0 || this.heap.topKey() > tokenMicros) return;
      this.refresh(this.heap.top(), tokenMicros);
    }
  }

  /** Removes a bucket that has expired, or corrects its position in the heap. Returns whether it was removed. */
  private refresh(slot: Slot, tokenMicros: number): boolean {
    const expiry = this.expiryOf(slot, tokenMicros);
    if (expiry <= tokenMicros) {
      this.drop(slot);
      return true;
    }
    if (expiry !== this.heap.keyOf(slot)) this.heap.update(slot, expiry);
    return false;
  }

  /** Returns a record for the latest key. Evicts another bucket if the table is full. */
  private claim(tokenMicros: number): Slot {
    const { maxBuckets, otherBytes } = this.options;
    const maxBytes = this.options.maxBytes - (otherBytes?.() ?? 0);
    const { words } = this.lookup;
    const bytes = recordBytes(words.count) + INDEX_BYTES;
    while (this.size > 0 && (this.size >= maxBuckets || this.bytes + bytes > maxBytes)) {
      const { size } = this;
      this.evict(tokenMicros);
      invariant(this.size < size, 'an eviction removes a bucket');
    }
    const slot = this.records.create(words);
    this.index.insert(slot);
    this.lookup.found = slot;
    this.lookup.changes = ++this.changes;
    this.bytes += bytes;
    return slot;
  }

  private evict(tokenMicros: number): void {
    let soonest = -1;
    for (let looks = 0; looks < MAX_EVICTION_SCAN; looks++) {
      const slot = this.heap.top();
      // The entry appeared twice, so its time is exact. All other times are lower bounds and not smaller.
      if (slot === soonest) break;
      if (this.refresh(slot, tokenMicros)) return;
      if (soonest < 0 || this.heap.keyOf(slot) < this.heap.keyOf(soonest)) soonest = slot;
    }
    this.drop(soonest);
    this.evictions++;
  }

  private drop(slot: Slot): void {
    this.bytes -= this.records.bytesOf(slot) + INDEX_BYTES;
    this.index.remove(slot);
    this.heap.remove(slot);
    this.changes++;
    this.moves++;
    const moved = this.records.remove(slot);
    if (moved < 0) return;
    this.index.moved(moved, slot);
    this.heap.renumbered(slot);
  }
}

function newLookup(words: KeyWords): CachedLookup {
  return { key: '', words, found: -1, changes: -1 };
}

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
function recordBytes(keyCount: number): number {
  return allocatedWords(recordWords(keyCount)) * 8;
}

/** The stored buckets: state, key, and positions in hash chain and expiry heap. */
class BucketRecords {
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
    doubles[at + WHOLE] = bucket.wholeMicros;
    doubles[at + PART] = bucket.remainder;
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
