import type { Clock } from '../../limiter/clock.js';
import type { RunningBucket } from '../../limiter/running-bucket.js';
import { BucketRecords, recordBytes } from './bucket-records.js';
import { ExpiryHeap } from './expiry-heap.js';
import { KeyIndex } from './key-index.js';
import { KeyWords } from './key-words.js';
import type { Slot } from './record-arena.js';

/** Bounds of a {@link BucketTable}, and its clock. */
export interface BucketTableOptions {
  /** Its wall time says when windows end. */
  readonly clock: Clock;
  /** Most buckets kept. */
  readonly maxBuckets: number;
  /** Most bytes kept, by the estimate of {@link bucketBytes}. */
  readonly maxBytes: number;
}

/** What a bucket takes beside its record: hash chain (4), heap entry (12), and a share of chunks that are not full. */
const INDEX_BYTES = 24;
/** Expired or stale entries looked at per write, so that idle buckets leave without a timer. */
const SWEEP_PER_WRITE = 4;
/**
 * Entries looked at for one eviction. Keys of the heap are only lower bounds (a take does not touch the heap), so
 * finding the very soonest could mean looking at all of them; past this many the soonest of those seen goes.
 */
const MAX_EVICTION_SCAN = 64;

/** Names kept in words from one request to the next; all behind them share one place. */
const MAX_CACHED_LOOKUPS = 16;

/** A name in words, and where its record was found, -1 if it has none. */
interface CachedLookup {
  readonly words: KeyWords;
  found: Slot;
  /** The table's when it was found: what was found before records were made, dropped or moved, may be wrong. */
  changes: number;
}

/** Estimated bytes of one bucket: a character takes one byte or, in a key with one outside ASCII, two. */
export function bucketBytes(key: string): number {
  const words = new KeyWords();
  words.load(key);
  return recordBytes(words.count) + INDEX_BYTES;
}

/**
 * Buckets by key, all in chunks of plain bytes: a million idle ones are nothing that the garbage collector walks, and
 * no array is ever copied to grow. Bounded; when full, the bucket that would be full soonest (the window that would end
 * soonest) goes first.
 */
export class BucketTable {
  /** Buckets dropped before they were full, since start. */
  evictions = 0;
  bytes = 0;
  private readonly options: BucketTableOptions;
  /**
   * One per place of a request: a write follows the read of the same name, and many requests name what the one before
   * did.
   */
  private readonly lookups: CachedLookup[] = [newLookup(new KeyWords())];
  /** That of the name looked for last. */
  private lookup = this.lookups[0] as CachedLookup;
  /** How often records were made, dropped or moved. */
  private changes = 0;
  /** How often records were dropped or moved, and what it was at the latest {@link read}. */
  private moves = 0;
  private movesAtRead = 0;
  private readonly records = new BucketRecords();
  private readonly index = new KeyIndex(this.records);
  private readonly heap = new ExpiryHeap(this.records);

  constructor(options: BucketTableOptions) {
    this.options = options;
  }

  get size(): number {
    return this.index.size;
  }

  /**
   * Loads the state stored under `key`, or none. `place` is where in a request the key stands, a hint for
   * {@link write}. Returns where the bucket is kept, -1 if it is not: two names of one request never give the same.
   */
  read(key: string, bucket: RunningBucket, place: number): Slot {
    const slot = this.find(key, place);
    this.movesAtRead = this.moves;
    if (slot < 0) bucket.load(0, 0, 0);
    else {
      this.records.loadState(slot, bucket);
      if (bucket.hasSurplus) bucket.setSurplusEnd(this.heap.keyOf(slot));
    }
    return slot;
  }

  /**
   * Stores a state, or drops the bucket if it is blank. `tokenMicros` is monotonic time, not before that of the call
   * before. `read` is what {@link read} returned for this key after the latest write of another request; -1 if it was
   * not read.
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
      heap.push(slot, bucket.hasSurplus ? bucket.surplusEndMicros : this.expiryOf(slot, tokenMicros));
    } else {
      const before = records.wholeOf(slot);
      const mayBeSooner =
        bucket.unit < 0 || bucket.unit !== records.unitOf(slot) || bucket.whole <= before || before < 0;
      records.storeState(slot, bucket);
      // Its time is kept nowhere else.
      if (bucket.hasSurplus) heap.update(slot, bucket.surplusEndMicros);
      // Later is left for whoever looks at the top; sooner (a refund, another limit) would otherwise stay hidden.
      else if (mayBeSooner) {
        const expiry = this.expiryOf(slot, tokenMicros);
        if (expiry < heap.keyOf(slot)) heap.update(slot, expiry);
      }
    }
    this.sweep(tokenMicros);
  }

  private find(key: string, place: number): Slot {
    const at = this.placeAt(Math.min(place, MAX_CACHED_LOOKUPS));
    this.lookup = at;
    if (at.words.load(key) || at.changes !== this.changes) {
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

  /** When the bucket may be forgotten, on the clock of token buckets. */
  private expiryOf(slot: Slot, tokenMicros: number): number {
    const unit = this.records.unitOf(slot);
    const whole = this.records.wholeOf(slot);
    // A window of the future (the wall clock stepped back) counts for nobody now, but lasts until its end.
    if (unit < 0) {
      const start = whole < 0 ? -1 - whole : whole;
      return tokenMicros + (start - unit - this.options.clock.wallMicros());
    }
    if (whole < 0) return this.heap.keyOf(slot);
    return this.records.partOf(slot) > 0 ? whole + 1 : whole;
  }

  private sweep(tokenMicros: number): void {
    for (let looks = 0; looks < SWEEP_PER_WRITE; looks++) {
      if (this.heap.size === 0 || this.heap.topKey() > tokenMicros) return;
      this.refresh(this.heap.top(), tokenMicros);
    }
  }

  /** Drops a bucket that is due, or puts it where it belongs. Returns whether it is gone. */
  private refresh(slot: Slot, tokenMicros: number): boolean {
    const expiry = this.expiryOf(slot, tokenMicros);
    if (expiry <= tokenMicros) {
      this.drop(slot);
      return true;
    }
    if (expiry !== this.heap.keyOf(slot)) this.heap.update(slot, expiry);
    return false;
  }

  /** A record for the key loaded last, after making room for it. */
  private claim(tokenMicros: number): Slot {
    const { maxBuckets, maxBytes } = this.options;
    const { words } = this.lookup;
    const bytes = recordBytes(words.count) + INDEX_BYTES;
    while (this.size > 0 && (this.size >= maxBuckets || this.bytes + bytes > maxBytes)) {
      this.evict(tokenMicros);
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
      // Seen twice: its key is exact, and every other key is a bound from below that is no smaller.
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
  return { words, found: -1, changes: -1 };
}
