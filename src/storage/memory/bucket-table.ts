import type { RunningBucket } from '../../limiter/running-bucket.js';
import { ExpiryHeap } from './expiry-heap.js';

/** Bounds of a {@link BucketTable}. */
export interface BucketTableOptions {
  /** Most buckets kept. */
  readonly maxBuckets: number;
  /** Most bytes kept, by the estimate of {@link bucketBytes}. */
  readonly maxBytes: number;
}

/** What a bucket takes beside the characters of its key: map entry, string header, seven numbers. Measured on Node 20, after growth of the map. */
const BUCKET_BYTES = 200;
/** Expired or stale entries looked at per write, so that idle buckets leave without a timer. */
const SWEEP_PER_WRITE = 4;
/**
 * Entries looked at for one eviction. Keys of the heap are only lower bounds (a take does not touch the heap), so finding the
 * very soonest could mean looking at all of them; past this many the soonest of those seen goes.
 */
const EVICTION_LOOKS = 64;
const FIRST_CAPACITY = 1024;

/** Estimated bytes of one bucket, rather too many: a character takes one byte or, outside Latin-1, two. */
export function bucketBytes(key: string): number {
  return BUCKET_BYTES + 2 * key.length;
}

/**
 * Buckets by key, in columns: a million idle ones are a map of strings and a few typed arrays, which the garbage collector
 * does not walk. Bounded; when full, the bucket that would be full soonest (the window that would end soonest) goes first.
 */
export class BucketTable {
  /** Buckets dropped before they were full, since start. */
  evictions = 0;
  bytes = 0;
  private readonly options: BucketTableOptions;
  private readonly slots = new Map<string, number>();
  private readonly keys: (string | undefined)[] = [];
  private readonly free: number[] = [];
  private capacity: number;
  private unit: Float64Array;
  private whole: Float64Array;
  private part: Float64Array;
  private readonly heap: ExpiryHeap;

  constructor(options: BucketTableOptions) {
    this.options = options;
    this.capacity = Math.max(1, Math.min(FIRST_CAPACITY, options.maxBuckets));
    this.unit = new Float64Array(this.capacity);
    this.whole = new Float64Array(this.capacity);
    this.part = new Float64Array(this.capacity);
    this.heap = new ExpiryHeap(this.capacity);
  }

  get size(): number {
    return this.slots.size;
  }

  /** Loads the state stored under `key`, or none. */
  read(key: string, bucket: RunningBucket): void {
    const slot = this.slots.get(key);
    if (slot === undefined) bucket.load(0, 0, 0);
    else bucket.load(this.unit[slot] as number, this.whole[slot] as number, this.part[slot] as number);
  }

  /** Stores a state, or drops the bucket if it is blank. Token buckets go by `tokenMicros`, windows by `windowMicros`. */
  write(key: string, bucket: RunningBucket, tokenMicros: number, windowMicros: number): void {
    let slot = this.slots.get(key);
    if (bucket.isBlank(tokenMicros)) {
      if (slot !== undefined) this.drop(slot);
      return;
    }
    const isNew = slot === undefined;
    if (slot === undefined) {
      this.makeRoom(bucketBytes(key), tokenMicros, windowMicros);
      slot = this.claim(key);
    }
    this.unit[slot] = bucket.unit;
    this.whole[slot] = bucket.whole;
    this.part[slot] = bucket.part;
    const expiry = this.expiryOf(slot, tokenMicros, windowMicros);
    if (isNew) this.heap.push(slot, expiry);
    // Later is left for whoever looks at the top; sooner (a refund, another limit) would otherwise stay hidden.
    else if (expiry < this.heap.keyOf(slot)) this.heap.update(slot, expiry);
    this.sweep(tokenMicros, windowMicros);
  }

  /** When the bucket may be forgotten, on the clock of token buckets. */
  private expiryOf(slot: number, tokenMicros: number, windowMicros: number): number {
    const unit = this.unit[slot] as number;
    const whole = this.whole[slot] as number;
    // A window of the future (the wall clock stepped back) counts for nobody now, but lasts until its end.
    if (unit < 0) return tokenMicros + (whole - unit - windowMicros);
    return (this.part[slot] as number) > 0 ? whole + 1 : whole;
  }

  private sweep(tokenMicros: number, windowMicros: number): void {
    for (let looks = 0; looks < SWEEP_PER_WRITE; looks++) {
      const slot = this.heap.top();
      if (slot < 0 || this.heap.keyOf(slot) > tokenMicros) return;
      this.refresh(slot, tokenMicros, windowMicros);
    }
  }

  /** Drops a bucket that is due, or puts it where it belongs. Returns whether it is gone. */
  private refresh(slot: number, tokenMicros: number, windowMicros: number): boolean {
    const expiry = this.expiryOf(slot, tokenMicros, windowMicros);
    if (expiry <= tokenMicros) {
      this.drop(slot);
      return true;
    }
    if (expiry !== this.heap.keyOf(slot)) this.heap.update(slot, expiry);
    return false;
  }

  private makeRoom(bytes: number, tokenMicros: number, windowMicros: number): void {
    const { maxBuckets, maxBytes } = this.options;
    while (this.size > 0 && (this.size >= maxBuckets || this.bytes + bytes > maxBytes)) {
      this.evict(tokenMicros, windowMicros);
    }
  }

  private evict(tokenMicros: number, windowMicros: number): void {
    let soonest = -1;
    for (let looks = 0; looks < EVICTION_LOOKS; looks++) {
      const slot = this.heap.top();
      // Seen twice: its key is exact, and every other key is a bound from below that is no smaller.
      if (slot === soonest) break;
      if (this.refresh(slot, tokenMicros, windowMicros)) return;
      if (soonest < 0 || this.heap.keyOf(slot) < this.heap.keyOf(soonest)) soonest = slot;
    }
    this.drop(soonest);
    this.evictions++;
  }

  private claim(key: string): number {
    const slot = this.free.pop() ?? this.slots.size;
    if (slot >= this.capacity) this.grow();
    this.slots.set(key, slot);
    this.keys[slot] = key;
    this.bytes += bucketBytes(key);
    return slot;
  }

  private drop(slot: number): void {
    const key = this.keys[slot] as string;
    this.slots.delete(key);
    this.keys[slot] = undefined;
    this.bytes -= bucketBytes(key);
    this.heap.remove(slot);
    this.free.push(slot);
  }

  private grow(): void {
    this.capacity = Math.min(this.capacity * 2, Math.max(this.options.maxBuckets, this.capacity + 1));
    this.unit = widened(this.unit, this.capacity);
    this.whole = widened(this.whole, this.capacity);
    this.part = widened(this.part, this.capacity);
    this.heap.grow(this.capacity);
  }
}

function widened(column: Float64Array, capacity: number): Float64Array {
  const wider = new Float64Array(capacity);
  wider.set(column);
  return wider;
}
