import { freeBuffer } from '../runtime/free-buffer.js';

const EMPTY = Buffer.alloc(0);
/** Size of the first slab of a connection. Small, because most connections are idle. */
const FIRST_SLAB_BYTES = 2048;
/** Maximum slab size. The size doubles each time a slab is used up. */
const LARGEST_SLAB_BYTES = 65_536;

/**
 * Output of one connection, in slabs. Bytes that were handed out are never changed; the rest of the slab is used for
 * later output:
 *
 *     slab:  | handed out | pending        | free        |
 *                         start            end           bytes.length
 */
export class OutputBuffer {
  /** The current slab. To write, call {@link reserve}, write at {@link end}, and advance {@link end}. */
  bytes: Buffer = EMPTY;
  end = 0;
  #start = 0;
  #slabBytes = FIRST_SLAB_BYTES / 2;

  /** Number of pending bytes. */
  get length(): number {
    return this.end - this.#start;
  }

  /** Reserves space for `octets` more bytes after {@link end}, and returns {@link end}. May replace {@link bytes}. */
  reserve(octets: number): number {
    if (this.bytes.length - this.end < octets) this.#nextSlab(octets);
    return this.end;
  }

  /** Returns the pending output, or undefined if it is empty. */
  take(): Buffer | undefined {
    if (this.end === this.#start) return undefined;
    const pending = this.bytes.subarray(this.#start, this.end);
    this.#start = this.end;
    if (this.bytes.length <= LARGEST_SLAB_BYTES) return pending;
    // A slab that was enlarged for a large response is not reused for small ones. Half of it may be unused, and the
    // output that was handed out may wait for a long time, so the output is copied.
    const cut = Buffer.allocUnsafeSlow(pending.length);
    pending.copy(cut);
    freeBuffer(this.bytes);
    this.clear();
    return cut;
  }

  /** Frees a slab without pending output. The next slab is small again. */
  trim(): void {
    if (this.length > 0) return;
    this.clear();
    this.#slabBytes = FIRST_SLAB_BYTES / 2;
  }

  /** Discards the pending output. */
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
