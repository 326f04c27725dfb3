import { randomFillSync, randomInt } from 'node:crypto';

const FIRST_CAPACITY = 256;
/**
 * Number of words whose memory is kept for the next key. Keys of policies are not longer, except with characters beyond
 * ASCII.
 */
const MAX_KEPT_WORDS = 2048;
const encoder = new TextEncoder();

/** Minimum and maximum words of a key that is compressed before it is hashed. Keys of policies are not longer. */
const MIN_COMPRESSED_WORDS = 16;
const MAX_COMPRESSED_WORDS = 1024;
/** Secrets for {@link compress}, drawn at start. */
const secrets = randomFillSync(new Int32Array(MAX_COMPRESSED_WORDS + 1));

/**
 * A bucket's key as 32-bit words, and its hash. {@link KeyIndex} finds them, and {@link RecordArena} stores them. One
 * object is loaded with one key after another.
 *
 * The hash is HalfSipHash-1-3, the small variant of SipHash, which Linux uses for its hash tables. Its key is random,
 * because callers choose tenant names and must not be able to create collisions. The hash of a long key is the hash of
 * two sums, see {@link compress}.
 */
export class KeyWords {
  /**
   * The characters, four per word in little-endian order, or two if a character is beyond ASCII. Zeros fill the last
   * word.
   */
  words = new Int32Array(FIRST_CAPACITY);
  /** Number of {@link words} in use. */
  count = 0;
  /** Number of characters, and whether they take two bytes each. Together with the words, it identifies the key. */
  info = 0;
  hash = 0;
  private bytes = new Uint8Array(this.words.buffer);
  private readonly seed0: number;
  private readonly seed1: number;
  private readonly sums = new Int32Array(2);

  /** The seeds are 32 random bits each, or fixed in tests. */
  constructor(seed0 = randomInt(2 ** 32), seed1 = randomInt(2 ** 32)) {
    this.seed0 = seed0 | 0;
    this.seed1 = seed1 | 0;
    this.load('');
  }

  /** Returns an empty object with the same hash function. */
  emptyCopy(): KeyWords {
    return new KeyWords(this.seed0, this.seed1);
  }

  /** Loads the words of `key`. */
  load(key: string): void {
    const length = key.length;
    const capacity = this.words.length;
    if (length > capacity * 2 || (capacity > MAX_KEPT_WORDS && length <= FIRST_CAPACITY)) {
      this.words = new Int32Array(Math.max(length, FIRST_CAPACITY));
      this.bytes = new Uint8Array(this.words.buffer);
    }
    if (this.packAscii(key)) {
      this.count = (length + 3) >> 2;
      this.info = length << 1;
    } else {
      this.packWide(key);
      this.count = (length + 1) >> 1;
      this.info = (length << 1) | 1;
    }
    const { words, count } = this;
    if (count <= MIN_COMPRESSED_WORDS || count > MAX_COMPRESSED_WORDS) {
      this.hash = this.halfSipHash(words, count);
    } else {
      compress(words, count, this.sums);
      this.hash = this.halfSipHash(this.sums, this.sums.length);
    }
  }

  /**
   * Returns false for a key with characters beyond ASCII. Takes half the time of a loop over charCodeAt, because V8
   * would search a concatenated key for each character.
   */
  private packAscii(key: string): boolean {
    const { bytes } = this;
    const length = key.length;
    const { read, written } = encoder.encodeInto(key, bytes);
    if (read !== length || written !== length) return false;
    for (let at = length; (at & 3) !== 0; at++) bytes[at] = 0;
    return true;
  }

  private packWide(key: string): void {
    const { words } = this;
    const length = key.length;
    for (let at = 0; at < length; at += 2) {
      const high = at + 1 < length ? key.charCodeAt(at + 1) : 0;
      words[at >> 1] = key.charCodeAt(at) | (high << 16);
    }
  }

  /** HalfSipHash with one round per word and three at the end, in 32-bit arithmetic. */
  private halfSipHash(words: Int32Array, count: number): number {
    const { seed0, seed1 } = this;
    let v0 = seed0;
    let v1 = seed1;
    let v2 = 0x6c796765 ^ seed0;
    let v3 = 0x74656462 ^ seed1;
    // The last iterations add the number of characters, where SipHash adds the length in bytes, and then finalize.
    for (let i = 0; i < count + 4; i++) {
      const word = i < count ? (words[i] as number) : i === count ? this.info : 0;
      if (i === count + 1) v2 ^= 0xff;
      v3 ^= word;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= word;
    }
    return v1 ^ v3;
  }
}

/**
 * Computes two sums of the words in a third of the hash's time. Uses NH (Black et al., "UMAC: Fast and Secure Message
 * Authentication", 1999) on the halves of each word, twice, with the secrets shifted by one word. For two keys of equal
 * length whose author does not know the secrets, the sums are equal with a probability of 2^-32.
 */
function compress(words: Int32Array, count: number, sums: Int32Array): void {
  let one = 0;
  let other = 0;
  let secret = secrets[0] as number;
  for (let i = 0; i < count; i++) {
    const word = words[i] as number;
    const high = word >>> 16;
    one = (one + Math.imul((word + secret) & 0xffff, (high + (secret >>> 16)) & 0xffff)) | 0;
    secret = secrets[i + 1] as number;
    other = (other + Math.imul((word + secret) & 0xffff, (high + (secret >>> 16)) & 0xffff)) | 0;
  }
  sums[0] = one;
  sums[1] = other;
}
