import { expectState } from '../../invariant.js';

/** Size classes of holdings: four to an octave, so that members of one differ by a quarter at most. */
const CLASSES = 128;

/** Something that holds memory for a peer, and can give all of it up. */
export interface MemoryOwner {
  /** Bytes held now. */
  measure(): number;
  /** Ends, and holds nothing any more. */
  evict(): void;
}

/** What one {@link MemoryOwner} holds, as far as it was told. */
export class MemoryAccount {
  readonly owner: MemoryOwner;
  bytes = 0;
  /** Its size class; -1 while it holds nothing. */
  sizeClass = -1;

  constructor(owner: MemoryOwner) {
    this.owner = owner;
  }
}

/**
 * Bounds what all connections of a process hold together: bytes that wait to be read, halves of frames, of header
 * blocks and of messages, what is being worked on, streams, answers that nobody takes. When it is too much, the one
 * that holds most goes first. Finding it takes the same few steps however many there are, at the price that it may hold
 * up to a quarter less than the very largest.
 */
export class BufferBudget {
  readonly maxBytes: number;
  #bytes = 0;
  readonly #classes: (Set<MemoryAccount> | undefined)[] = new Array(CLASSES).fill(undefined);
  #highest = -1;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** Bytes held by all together. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `account` is `bytes` now. Cheap where little has changed. */
  set(account: MemoryAccount, bytes: number): void {
    if (bytes === account.bytes) return;
    this.#bytes += bytes - account.bytes;
    account.bytes = bytes;
    expectState(bytes >= 0 && this.#bytes >= 0, 'nobody holds less than nothing');
    const sizeClass = sizeClassOf(bytes);
    if (sizeClass !== account.sizeClass) this.#move(account, sizeClass);
  }

  /**
   * Ends those that hold most until the rest is within the budget. Call it where no connection is in the middle of
   * something.
   */
  enforce(): void {
    while (this.#bytes > this.maxBytes) {
      const largest = this.#largest();
      if (largest === undefined) return;
      const { owner } = largest;
      // Sockets take what is written without a word.
      const bytes = owner.measure();
      const changed = bytes < largest.bytes;
      this.set(largest, bytes);
      if (changed) continue;
      owner.evict();
      this.set(largest, 0);
    }
  }

  #move(account: MemoryAccount, sizeClass: number): void {
    if (account.sizeClass >= 0) this.#classes[account.sizeClass]?.delete(account);
    account.sizeClass = sizeClass;
    if (sizeClass < 0) return;
    let members = this.#classes[sizeClass];
    if (members === undefined) {
      members = new Set();
      this.#classes[sizeClass] = members;
    }
    members.add(account);
    if (sizeClass > this.#highest) this.#highest = sizeClass;
  }

  #largest(): MemoryAccount | undefined {
    for (; this.#highest >= 0; this.#highest--) {
      const members = this.#classes[this.#highest];
      if (members === undefined) continue;
      for (const account of members) return account;
    }
    return undefined;
  }
}

/** The octave of `bytes`, in quarters. */
function sizeClassOf(bytes: number): number {
  if (bytes <= 0) return -1;
  const whole = Math.min(bytes, 0x7fff_ffff);
  const octave = 31 - Math.clz32(whole);
  const quarter = octave < 2 ? 0 : (whole >>> (octave - 2)) & 3;
  return 4 * octave + quarter;
}
