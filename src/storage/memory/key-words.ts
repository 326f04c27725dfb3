import { randomFillSync, randomInt } from 'node:crypto';

const FIRST_CAPACITY = 256;
/** Words kept from one name to the next; policies give no longer names, but perhaps one of wide characters. */
const MAX_KEPT_WORDS = 2048;
const encoder = new TextEncoder();

/**
 * Names of more words than the least, and of no more than the most, are compressed before they are hashed; policies
 * give none that is longer.
 */
const MIN_COMPRESSED_WORDS = 16;
const MAX_COMPRESSED_WORDS = 1024;
/** Secrets to compress with, drawn at start; see {@link compress}. */
const secrets = randomFillSync(new Int32Array(MAX_COMPRESSED_WORDS + 1));

/**
 * A bucket's name as 32 bit words, and its hash: what {@link KeyIndex} finds and {@link RecordArena} keeps. One object,
 * loaded with one name after the other.
 *
 * The hash is HalfSipHash-1-3 (the small variant of SipHash; Linux keys its hash tables with it) under a key drawn at
 * start: tenants are named by callers, who must not be able to choose names that collide. Of long names it is the hash
 * of two sums, see {@link compress}.
 */
export class KeyWords {
  /**
   * Four characters a word, little endian; two where one of them is beyond ASCII. The last word is filled up with
   * zeros.
   */
  words = new Int32Array(FIRST_CAPACITY);
  /** How many of {@link words} count. */
  count = 0;
  /** Number of characters, and whether they take two bytes each: with the words, the whole name. */
  info = 0;
  hash = 0;
  private key = '';
  private bytes = new Uint8Array(this.words.buffer);
  private readonly seed0: number;
  private readonly seed1: number;
  private readonly sums = new Int32Array(2);

  /** The seeds are 32 random bits each unless a test says otherwise. */
  constructor(seed0 = randomInt(2 ** 32), seed1 = randomInt(2 ** 32)) {
    this.seed0 = seed0 | 0;
    this.seed1 = seed1 | 0;
    this.loadNew('');
  }

  /** One for another name, with the same hash. */
  emptyCopy(): KeyWords {
    return new KeyWords(this.seed0, this.seed1);
  }

  /**
   * Takes the words of `key` in. Returns whether it is another one than before: the same again costs next to nothing.
   */
  load(key: string): boolean {
    if (key === this.key) return false;
    this.loadNew(key);
    return true;
  }

  private loadNew(key: string): void {
    this.key = key;
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
   * Returns false for a name with characters beyond ASCII. Half the time of a loop over charCodeAt: names come as ropes
   * of concatenated parts, which V8 would look through at each character.
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

  /** One round a word and three at the end, all in 32 bit arithmetic. */
  private halfSipHash(words: Int32Array, count: number): number {
    const { seed0, seed1 } = this;
    let v0 = seed0;
    let v1 = seed1;
    let v2 = 0x6c796765 ^ seed0;
    let v3 = 0x74656462 ^ seed1;
    // The last turns: number of characters in place of a length in bytes, then the finalisation.
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
 * Two sums of the words, in a third of the time of the hash: NH (Black et al., "UMAC: Fast and Secure Message
 * Authentication", 1999) on the halves of each word, twice, with the secrets moved on by one word. Two names of one
 * length give the same sums with a probability of 2^-32, whoever chooses them without knowing the secrets.
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
