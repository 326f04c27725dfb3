import { checkInvariant } from '../../runtime/invariant.js';

/**
 * Number of size classes of accounts. There are four classes to an octave, so the sizes in one class differ by at most
 * a quarter.
 */
const CLASSES = 128;

/** An owner of memory that is held for a peer, and can be freed. */
export interface MemoryOwner {
  /** Returns the bytes held now. */
  measure(): number;
  /** Closes the owner and frees its memory. */
  evict(): void;
}

/** The memory of one {@link MemoryOwner}, as last reported. */
export class MemoryAccount {
  readonly owner: MemoryOwner;
  bytes = 0;
  /** Index of the size class, or -1 if nothing is held. */
  sizeClass = -1;

  constructor(owner: MemoryOwner) {
    this.owner = owner;
  }
}

/**
 * Limits the memory that all connections of a process hold together: unread bytes, incomplete frames, header blocks and
 * messages, requests in progress, streams, and unread responses. When the limit is exceeded, the owner that holds most
 * is evicted first. Finding it takes a constant number of steps for any number of owners; in return, the evicted owner
 * may hold up to a quarter less than the largest.
 */
export class BufferBudget {
  readonly maxBytes: number;
  #bytes = 0;
  readonly #classes: (Set<MemoryAccount> | undefined)[] = new Array(CLASSES).fill(undefined);
  #highest = -1;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** Bytes held by all owners together. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Updates an account. Cheap if the size changes little. */
  set(account: MemoryAccount, bytes: number): void {
    if (bytes === account.bytes) return;
    this.#bytes += bytes - account.bytes;
    account.bytes = bytes;
    checkInvariant(bytes >= 0 && this.#bytes >= 0, 'held memory is never negative');
    const sizeClass = sizeClassOf(bytes);
    if (sizeClass !== account.sizeClass) this.#move(account, sizeClass);
  }

  /**
   * Evicts the largest owners until the rest fits the limit. Must not be called while a connection is being processed.
   */
  enforce(): void {
    while (this.#bytes > this.maxBytes) {
      const largest = this.#largest();
      if (largest === undefined) return;
      const { owner } = largest;
      // Sockets write buffered bytes without an event, so the account may be out of date.
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

/** Returns the size class of `bytes`: four classes to an octave. */
function sizeClassOf(bytes: number): number {
  if (bytes <= 0) return -1;
  const whole = Math.min(bytes, 0x7fff_ffff);
  const octave = 31 - Math.clz32(whole);
  const quarter = octave < 2 ? 0 : (whole >>> (octave - 2)) & 3;
  return 4 * octave + quarter;
}
