/**
 * A record's number: chunk, and place in it in words of 8 bytes. Held by nothing across {@link RecordArena.free}, which
 * moves records.
 */
export type Slot = number;

const PLACE_BITS = 13;
const PLACE_MASK = (1 << PLACE_BITS) - 1;
/** 64 KiB: allocated and filled with zeros in some ten microseconds, so that growth is never felt. */
const CHUNK_WORDS = 1 << PLACE_BITS;
/** Larger records have a chunk of their own size each. */
const LARGE_WORDS = CHUNK_WORDS / 8;
/** Up to here each number of words is a size class of its own; above, eight to a doubling. */
const EXACT_WORDS = 64;
/** Empty chunks kept for the next need instead of being given back. */
const SPARE_CHUNKS = 16;
const NOTHING = new ArrayBuffer(0);

/** Records of one size, dense: all chunks but the last are full. */
interface SizeClass {
  readonly words: number;
  readonly perChunk: number;
  readonly chunks: number[];
  /** Records in the last chunk. */
  used: number;
}

/** Words that a record of `words` really takes. */
export function allocatedWords(words: number): number {
  if (words <= EXACT_WORDS || words > LARGE_WORDS) return words;
  const step = 1 << (28 - Math.clz32(words - 1));
  return Math.ceil(words / step) * step;
}

/**
 * Records of whole words (8 bytes) in chunks that are never copied: growing costs no pause, and the garbage collector
 * sees a few buffers instead of a million objects. Records of a size stand close together: the last one moves into the
 * place of one that is freed, so that no pattern of sizes leaves holes behind. What may be wasted is a part of a chunk
 * per size class (some hundred).
 */
export class RecordArena {
  /** Both views of each chunk: `doubles[chunkOf(slot)][placeOf(slot)]`, `ints[chunkOf(slot)][2 * placeOf(slot)]`. */
  readonly doubles: Float64Array[] = [];
  readonly ints: Int32Array[] = [];
  private readonly classes: (SizeClass | undefined)[] = new Array(LARGE_WORDS + 1).fill(undefined);
  private readonly wordsOf: number[] = [];
  private readonly freeChunks: number[] = [];
  private readonly spare: ArrayBuffer[] = [];

  /** A place for a record. What it holds is undefined. */
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

  /** Gives a record back. Returns the record that has moved to `slot`, by the number it had; -1 if none had to. */
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
      // As integers: a double that is no number may come out with other bits than went in.
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

/** Which chunk of the arena holds a slot, from 0. */
export function chunkOf(slot: Slot): number {
  return slot >>> PLACE_BITS;
}

/** Where in its chunk a slot is, from 0. */
export function placeOf(slot: Slot): number {
  return slot & PLACE_MASK;
}
