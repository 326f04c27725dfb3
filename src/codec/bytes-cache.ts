/** The 32-bit prime of the FNV hash. */
const HASH_PRIME = 0x0100_0193;
/**
 * The last bytes are all hashed, because values of callers are there, and of those before them one in four. Hashing all
 * bytes of a message would take as long as comparing them.
 */
const HASHED_TAIL = 20;
const HASHED_STEP = 4;

/**
 * Caches values that are made from short sequences of bytes. Comparing bytes is several times cheaper than creating a
 * string or a message from them.
 *
 * The hash of the bytes selects two adjacent slots. A value is stored immediately if one of them is free. Otherwise, it
 * replaces another value if it is missed several times in a row, so that bytes that rarely recur evict few values.
 *
 * A hit requires that all bytes are equal. Bytes that are crafted to collide therefore only make the sender's own
 * requests slower.
 */
export class BytesCache<Value> {
  readonly #make: (bytes: Uint8Array, start: number, end: number) => Value;
  readonly #maxBytes: number;
  readonly #slots: number;
  readonly #lengths: Uint8Array;
  readonly #bytes: Uint8Array;
  readonly #missesToReplace: number;
  /** Hash of the last bytes that were missed, and how often in a row, by slot. */
  readonly #missed: Int32Array;
  readonly #misses: Uint8Array;
  readonly #values: (Value | undefined)[];

  /**
   * @param slots maximum number of cached values, a power of two
   * @param maxBytes maximum length of the bytes of a cached value, less than 256
   * @param missesToReplace number of misses in a row after which a value replaces another
   * @param make makes the value of `bytes[start, end)`; always the same for equal bytes
   */
  constructor(
    slots: number,
    maxBytes: number,
    missesToReplace: number,
    make: (bytes: Uint8Array, start: number, end: number) => Value,
  ) {
    this.#make = make;
    this.#maxBytes = maxBytes;
    this.#slots = slots;
    this.#lengths = new Uint8Array(slots);
    this.#bytes = new Uint8Array(slots * maxBytes);
    this.#missesToReplace = missesToReplace;
    this.#missed = new Int32Array(slots);
    this.#misses = new Uint8Array(slots);
    this.#values = new Array<Value | undefined>(slots).fill(undefined);
  }

  /** Returns the value of `bytes[start, end)`. Throws what `make` throws. */
  read(bytes: Uint8Array, start: number, end: number): Value {
    const length = end - start;
    if (length === 0 || length > this.#maxBytes) return this.#make(bytes, start, end);
    let hash = length;
    const tail = end - HASHED_TAIL;
    for (let at = start; at < tail; at += HASHED_STEP)
      hash = Math.imul(hash ^ (bytes[at] as number), HASH_PRIME);
    for (let at = Math.max(start, tail); at < end; at++)
      hash = Math.imul(hash ^ (bytes[at] as number), HASH_PRIME);
    const slot = (hash ^ (hash >>> 16)) & (this.#slots - 1);
    if (this.#matches(slot, bytes, start, length)) return this.#values[slot] as Value;
    if (this.#matches(slot ^ 1, bytes, start, length)) return this.#values[slot ^ 1] as Value;
    const value = this.#make(bytes, start, end);
    if (this.#lengths[slot] === 0) this.#store(slot, bytes, start, end, value);
    else if (this.#lengths[slot ^ 1] === 0) this.#store(slot ^ 1, bytes, start, end, value);
    else if (this.#isOftenMissed(slot, hash)) this.#store(slot, bytes, start, end, value);
    return value;
  }

  /** Counts a miss, and returns whether it was the last one before a value is replaced. */
  #isOftenMissed(slot: number, hash: number): boolean {
    const misses = this.#missed[slot] === hash ? (this.#misses[slot] as number) + 1 : 1;
    this.#missed[slot] = hash;
    this.#misses[slot] = misses % this.#missesToReplace;
    return misses >= this.#missesToReplace;
  }

  #matches(slot: number, bytes: Uint8Array, start: number, length: number): boolean {
    if (this.#lengths[slot] !== length) return false;
    const kept = this.#bytes;
    const from = slot * this.#maxBytes;
    for (let i = 0; i < length; i++) if (kept[from + i] !== bytes[start + i]) return false;
    return true;
  }

  #store(slot: number, bytes: Uint8Array, start: number, end: number, value: Value): void {
    const kept = this.#bytes;
    let at = slot * this.#maxBytes;
    for (let from = start; from < end; from++) kept[at++] = bytes[from] as number;
    this.#lengths[slot] = end - start;
    this.#values[slot] = value;
  }
}
