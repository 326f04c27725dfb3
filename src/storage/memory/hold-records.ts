import type { Settlement } from '../../limiter/holds/hold.js';
import type { ChainedRecords } from './key-index.js';
import { chunkOf, placeOf, RecordArena, type Slot } from './record-arena.js';

/*
 * A record, in words of 8 bytes:
 *
 *   0      1     2                    3                4                5
 *   taken  full  id 1st | id 2nd      id 3rd | set     hits | lifetime  next | position
 */
const WORDS = 6;
const TAKEN = 0;
const FULL = 1;
/** Indexes in the view of 32-bit integers. */
const ID = 4;
const SET = 7;
const AMOUNT = 8;
const LIFETIME = 9;
const NEXT = 10;
const POSITION = 11;

/** Returns the value of a hexadecimal digit with the character code `code`. */
function digitOf(code: number): number {
  // The letters a to f have the codes 97 to 102.
  return code < 58 ? code - 48 : (code & 15) + 9;
}

/** The id of one slot of a hold, as three 32-bit words. One object is loaded with one id after another. */
export class HoldId {
  readonly words = new Int32Array(3);
  hash = 0;

  /**
   * Loads an id of 24 hexadecimal digits, and the number of a slot, which a hold of several slots adds to it. The
   * number is part of the hash, because slots with equal hashes would form one long chain.
   */
  load(id: string, slot: number): this {
    const { words } = this;
    for (let i = 0, at = 0; i < 3; i++) {
      let word = 0;
      for (const end = at + 8; at < end; at++) word = (word << 4) | digitOf(id.charCodeAt(at));
      words[i] = word;
    }
    words[2] = (words[2] as number) ^ slot;
    this.hash = (words[0] as number) ^ words[2];
    return this;
  }
}

/** The stored holds. The id is random, so its first and last parts are the hash. */
export class HoldRecords implements ChainedRecords<HoldId> {
  readonly #arena = new RecordArena();

  /** Creates a record. Values, chain and position must still be set. */
  create(id: HoldId, set: number): Slot {
    const slot = this.#arena.allocate(WORDS);
    const ints = this.#intsOf(slot);
    const at = 2 * placeOf(slot);
    for (let i = 0; i < 3; i++) ints[at + ID + i] = id.words[i] as number;
    ints[at + SET] = set;
    return slot;
  }

  /** Removes a record. Returns the former slot of the record that moved to `slot`, or -1. */
  remove(slot: Slot): Slot {
    return this.#arena.free(slot);
  }

  store(slot: Slot, amount: number, lifetimeMillis: number, fullMicros: number, takenMicros: number): void {
    const doubles = this.#doublesOf(slot);
    const ints = this.#intsOf(slot);
    const at = placeOf(slot);
    doubles[at + TAKEN] = takenMicros;
    doubles[at + FULL] = fullMicros;
    ints[2 * at + AMOUNT] = amount;
    ints[2 * at + LIFETIME] = lifetimeMillis;
  }

  takenMicrosOf(slot: Slot): number {
    return this.#doublesOf(slot)[placeOf(slot) + TAKEN] as number;
  }

  /** Returns whether the hold has these values. */
  isHoldOf(slot: Slot, { amount, lifetimeMillis, fullMicros }: Settlement): boolean {
    const ints = this.#intsOf(slot);
    const at = placeOf(slot);
    return (
      ints[2 * at + AMOUNT] === (amount | 0) &&
      ints[2 * at + LIFETIME] === (lifetimeMillis | 0) &&
      this.#doublesOf(slot)[at + FULL] === fullMicros
    );
  }

  setOf(slot: Slot): number {
    return this.#intsOf(slot)[2 * placeOf(slot) + SET] as number;
  }

  hashOf(slot: Slot): number {
    const ints = this.#intsOf(slot);
    const at = 2 * placeOf(slot) + ID;
    return (ints[at] as number) ^ (ints[at + 2] as number);
  }

  isNamed(slot: Slot, { words }: HoldId): boolean {
    const ints = this.#intsOf(slot);
    const at = 2 * placeOf(slot) + ID;
    return ints[at] === words[0] && ints[at + 1] === words[1] && ints[at + 2] === words[2];
  }

  nextOf(slot: Slot): Slot {
    return this.#intsOf(slot)[2 * placeOf(slot) + NEXT] as number;
  }

  setNext(slot: Slot, next: Slot): void {
    this.#intsOf(slot)[2 * placeOf(slot) + NEXT] = next;
  }

  positionOf(slot: Slot): number {
    return this.#intsOf(slot)[2 * placeOf(slot) + POSITION] as number;
  }

  setPosition(slot: Slot, position: number): void {
    this.#intsOf(slot)[2 * placeOf(slot) + POSITION] = position;
  }

  #doublesOf(slot: Slot): Float64Array {
    return this.#arena.doubles[chunkOf(slot)] as Float64Array;
  }

  #intsOf(slot: Slot): Int32Array {
    return this.#arena.ints[chunkOf(slot)] as Int32Array;
  }
}
