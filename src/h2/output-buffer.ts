import { freeBuffer } from '../runtime/free-buffer.js';

const EMPTY = Buffer.alloc(0);
/** First slab of a connection; small, as most connections of many are idle. */
const FIRST_SLAB_BYTES = 2048;
/** A slab is doubled when it is used up, up to this. */
const LARGEST_SLAB_BYTES = 65_536;

/**
 * Output of one connection, in slabs. What was handed out is never touched again; the rest of its slab takes later
 * output:
 *
 *     slab:  | handed out | pending        | free        |
 *                         start            end           bytes.length
 */
export class OutputBuffer {
  /** The slab. Write at {@link end} after {@link reserve}, then move {@link end}. */
  bytes: Buffer = EMPTY;
  end = 0;
  #start = 0;
  #slabBytes = FIRST_SLAB_BYTES / 2;

  /** Pending bytes. */
  get length(): number {
    return this.end - this.#start;
  }

  /**
   * Makes room for `octets` more after {@link end}; returns {@link end}. {@link bytes} may be another object
   * afterwards.
   */
  reserve(octets: number): number {
    if (this.bytes.length - this.end < octets) this.#nextSlab(octets);
    return this.end;
  }

  /** Hands out what is pending, or undefined when nothing is. */
  take(): Buffer | undefined {
    if (this.end === this.#start) return undefined;
    const pending = this.bytes.subarray(this.#start, this.end);
    this.#start = this.end;
    if (this.bytes.length <= LARGEST_SLAB_BYTES) return pending;
    // A slab that a large answer has made is not kept for small ones, and half of it may be free: what is handed out
    // may wait for long.
    const cut = Buffer.allocUnsafeSlow(pending.length);
    pending.copy(cut);
    freeBuffer(this.bytes);
    this.clear();
    return cut;
  }

  /** Gives up a slab in which nothing is pending; the next one is small again. */
  trim(): void {
    if (this.length > 0) return;
    this.clear();
    this.#slabBytes = FIRST_SLAB_BYTES / 2;
  }

  /** Forgets what is pending. */
  clear(): void {
    this.bytes = EMPTY;
    this.#start = 0;
    this.end = 0;
  }

  #nextSlab(octets: number): void {
    const pending = this.end - this.#start;
    if (this.#slabBytes < LARGEST_SLAB_BYTES) this.#slabBytes *= 2;
    const next = Buffer.allocUnsafeSlow(Math.max(this.#slabBytes, 2 * (pending + octets)));
    this.bytes.copy(next, 0, this.#start, this.end);
    if (this.#start === 0) freeBuffer(this.bytes);
    this.bytes = next;
    this.#start = 0;
    this.end = pending;
  }
}
