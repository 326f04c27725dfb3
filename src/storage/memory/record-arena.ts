/**
 * Number of a record: its chunk, and its position in 8-byte words. {@link RecordArena.free} moves a record, which makes
 * its number invalid.
 */
export type Slot = number;

const PLACE_BITS = 13;
const PLACE_MASK = (1 << PLACE_BITS) - 1;
/**
 * Words in a chunk of 64 KiB. Allocating and zeroing a chunk takes some ten microseconds, so that growth causes no
 * pause.
 */
const CHUNK_WORDS = 1 << PLACE_BITS;
/** Size in words above which each record gets a separate chunk. */
const LARGE_WORDS = CHUNK_WORDS / 8;
/** Size in words up to which each size has its own class. Above it, there are eight classes for each doubling. */
const EXACT_WORDS = 64;
/** Maximum number of empty chunks that are kept for later. */
const SPARE_CHUNKS = 16;
const NOTHING = new ArrayBuffer(0);

/** Records of one size, without gaps: all chunks except the last are full. */
interface SizeClass {
  readonly words: number;
  readonly perChunk: number;
  readonly chunks: number[];
  /** Number of records in the last chunk. */
  used: number;
}

export function allocatedWords(words: number): number {
  if (words <= EXACT_WORDS || words > LARGE_WORDS) return words;
  const step = 1 << (28 - Math.clz32(words - 1));
  return Math.ceil(words / step) * step;
}

/**
 * Stores records of 8-byte words in chunks that are never copied. Growth causes no pause, and the garbage collector
 * sees a few buffers instead of a million objects. Records of one size are contiguous: the last record moves to the
 * position of a freed record. Unused memory is at most a part of one chunk for each of some hundred size classes.
 */
export class RecordArena {
  /** Both views of each chunk: `doubles[chunkOf(slot)][placeOf(slot)]` and `ints[chunkOf(slot)][2 * placeOf(slot)]`. */
  readonly doubles: Float64Array[] = [];
  readonly ints: Int32Array[] = [];
  private readonly classes: (SizeClass | undefined)[] = new Array(LARGE_WORDS + 1).fill(undefined);
  private readonly wordsOf: number[] = [];
  private readonly freeChunks: number[] = [];
  private readonly spare: ArrayBuffer[] = [];

  /** Allocates a record with undefined contents. */
  allocate(words: number): Slot {
    const taken = allocatedWords(words);
    if (taken > LARGE_WORDS) return this.open(new ArrayBuffer(taken * 8), taken) << PLACE_BITS;
    let size = this.classes[taken];
    if (size === undefined) {
      size = { words: taken, perChunk: Math.floor(CHUNK_WORDS / taken), chunks: [], used: 0 };
      this.classes[taken] = size;
    }
    if (size.chunks.length === 0 || size.used === size.perChunk) {
      size.chunks.push(this.open(this.spare.pop() ?? new ArrayBuffer(CHUNK_WORDS * 8), taken));
      size.used = 0;
    }
    const chunk = size.chunks[size.chunks.length - 1] as number;
    return (chunk << PLACE_BITS) | (size.used++ * taken);
  }

  /** Frees a record. Returns the former number of the record that moved to `slot`, or -1. */
  free(slot: Slot): Slot {
    const chunk = chunkOf(slot);
    const words = this.wordsOf[chunk] as number;
    if (words > LARGE_WORDS) {
      this.shut(chunk);
      return -1;
    }
    const size = this.classes[words] as SizeClass;
    const lastChunk = size.chunks[size.chunks.length - 1] as number;
    const last = (lastChunk << PLACE_BITS) | (--size.used * words);
    if (last !== slot) {
      // Copies integers, because copying a NaN as a double may change its bits.
      const to = this.ints[chunk] as Int32Array;
      const from = this.ints[lastChunk] as Int32Array;
      const toPlace = 2 * placeOf(slot);
      const fromPlace = 2 * placeOf(last);
      for (let i = 0; i < 2 * words; i++) to[toPlace + i] = from[fromPlace + i] as number;
    }
    if (size.used === 0) {
      size.chunks.pop();
      size.used = size.perChunk;
      if (this.spare.length < SPARE_CHUNKS)
        this.spare.push((this.ints[lastChunk] as Int32Array).buffer as ArrayBuffer);
      this.shut(lastChunk);
    }
    return last === slot ? -1 : last;
  }

  private open(buffer: ArrayBuffer, words: number): number {
    const chunk = this.freeChunks.pop() ?? this.doubles.length;
    this.doubles[chunk] = new Float64Array(buffer);
    this.ints[chunk] = new Int32Array(buffer);
    this.wordsOf[chunk] = words;
    return chunk;
  }

  private shut(chunk: number): void {
    this.doubles[chunk] = new Float64Array(NOTHING);
    this.ints[chunk] = new Int32Array(NOTHING);
    this.freeChunks.push(chunk);
  }
}

export function chunkOf(slot: Slot): number {
  return slot >>> PLACE_BITS;
}

/** The position of a slot in its chunk, in words. */
export function placeOf(slot: Slot): number {
  return slot & PLACE_MASK;
}
