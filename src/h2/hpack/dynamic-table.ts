/**
 * Overhead of a table entry in addition to its name and value (RFC 7541 section 4.1), and of a field in a header list
 * (RFC 9113 section 6.5.2). Bytes.
 */
export const ENTRY_OVERHEAD = 32;

const NOTHING: string[] = [];

/** The decoder's dynamic table (RFC 7541 section 2.3.2): a ring in which the newest entry has the lowest index. */
export class DynamicTable {
  /** Number of entries. */
  length = 0;
  /** Bytes of all entries (RFC 7541 section 4.1). */
  size = 0;
  #maxSize: number;
  // Separate arrays for names and values avoid an object for each entry. The length of the ring is a power of two. The
  // arrays are allocated with the first entry, because there may be many idle connections.
  #names: string[] = NOTHING;
  #values: string[] = NOTHING;
  readonly #mask: number;
  #newest = 0;

  /** `maxSize`: initial size in bytes. `largestSize`: the maximum that {@link resize} is ever called with. */
  constructor(maxSize: number, largestSize: number) {
    this.#maxSize = maxSize;
    const slots = 2 ** Math.ceil(Math.log2(Math.floor(Math.max(maxSize, largestSize) / ENTRY_OVERHEAD) + 1));
    this.#mask = slots - 1;
  }

  /** Returns the name of the entry that is `age` entries older than the newest. The entry must exist. */
  nameAt(age: number): string {
    return this.#names[(this.#newest - age) & this.#mask] as string;
  }

  valueAt(age: number): string {
    return this.#values[(this.#newest - age) & this.#mask] as string;
  }

  /**
   * Returns whether an entry of `entrySize` bytes fits the table at all. Adding an entry that does not fit empties the
   * table (RFC 7541 section 4.4).
   */
  fits(entrySize: number): boolean {
    return entrySize <= this.#maxSize;
  }

  /** Adds an entry that {@link fits}. */
  add(name: string, value: string): void {
    const size = name.length + value.length + ENTRY_OVERHEAD;
    this.#evictDownTo(this.#maxSize - size);
    if (this.#names === NOTHING) {
      this.#names = new Array<string>(this.#mask + 1).fill('');
      this.#values = new Array<string>(this.#mask + 1).fill('');
    }
    this.#newest = (this.#newest + 1) & this.#mask;
    this.#names[this.#newest] = name;
    this.#values[this.#newest] = value;
    this.length += 1;
    this.size += size;
  }

  clear(): void {
    this.#evictDownTo(0);
  }

  /** Sets the maximum size in bytes (RFC 7541 section 4.3). */
  resize(maxSize: number): void {
    this.#maxSize = maxSize;
    this.#evictDownTo(maxSize);
  }

  #evictDownTo(size: number): void {
    while (this.size > size) {
      const oldest = (this.#newest - this.length + 1) & this.#mask;
      const entrySize =
        (this.#names[oldest] as string).length + (this.#values[oldest] as string).length + ENTRY_OVERHEAD;
      this.#names[oldest] = '';
      this.#values[oldest] = '';
      this.length -= 1;
      this.size -= entrySize;
    }
  }
}
