/** Random choices that depend only on the seed (xorshift on a mixed seed). */
export class Random {
  private state: number;

  constructor(seed: number) {
    let mixed = (seed ^ 0x9e37_79b9) | 0;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85eb_ca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35);
    mixed ^= mixed >>> 16;
    this.state = mixed === 0 ? 1 : mixed;
  }

  /** Returns an integer in [0, 2^32). */
  uint32(): number {
    let state = this.state;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.state = state;
    return state >>> 0;
  }

  /** Returns an integer in [0, bound). */
  below(bound: number): number {
    return this.uint32() % bound;
  }

  /** Returns true once in `times`. */
  oneIn(times: number): boolean {
    return this.uint32() % times === 0;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)] as T;
  }

  /** Returns a length that is usually small and rarely close to `bound`. */
  length(bound: number): number {
    return this.oneIn(8) ? this.below(bound) : this.below(Math.min(bound, 16));
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let i = 0; i < length; i++) bytes[i] = this.uint32();
    return bytes;
  }

  /** Returns characters that are valid in a field value; rarely, arbitrary bytes. */
  text(length: number): string {
    let text = '';
    for (let i = 0; i < length; i++) text += String.fromCharCode(this.valueByte());
    return text;
  }

  private valueByte(): number {
    return this.oneIn(10) ? 0x80 + this.below(0x80) : 0x21 + this.below(0x5e);
  }
}
