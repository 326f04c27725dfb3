import { type HeldHits, HOLD_ID_DIGITS, type HoldValues } from '../../limiter/holds/hold.js';
import type { ChainedRecords } from './key-index.js';
import { chunkOf, placeOf, RecordArena, type Slot } from './record-arena.js';

/*
 * A record, in words of 8 bytes:
 *
 *   0     1                  2             3                4                5               6
 *   mark  id 1st | id 2nd    id 3rd | set  hits | lifetime  next | position  before | after  cost
 *
 * The mark is `fullAtMicros`, or -1 - `takenMicros` if `fullAtMicros` is 0. In the first case, the table computes
 * `takenMicros` from the time at which the hold expires.
 */
const WORDS = 7;
const MARK = 0;
const COST = 6;
/** Indexes in the view of 32-bit integers. */
const ID = 2;
const SET = 5;
const AMOUNT = 6;
const LIFETIME = 7;
const NEXT = 8;
const POSITION = 9;
const BEFORE = 10;
const AFTER = 11;

/** The id of one slot of a hold, as three 32-bit words. The same object is used for all ids, one after another. */
export class HoldId {
  readonly words = new Int32Array(3);
  hash = 0;
  readonly #bytes = Buffer.from(this.words.buffer);

  /**
   * Loads an id of 24 hexadecimal digits, and the number of the slot if the hold has several slots. The number is part
   * of the hash, because slots with equal hashes would form one long chain.
   */
  load(id: string, slot: number): this {
    const { words } = this;
    this.#bytes.write(id, 'hex');
    words[2] = (words[2] as number) ^ slot;
    this.hash = (words[0] as number) ^ words[2];
    return this;
  }
}

/** The stored holds. Ids are random, so the first and the last part of an id serve as its hash. */
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

  store(
    slot: Slot,
    { amount, fullAtMicros, refillMicros = 0 }: HeldHits,
    lifetimeMillis: number,
    takenMicros: number,
  ): void {
    const doubles = this.#doublesOf(slot);
    const ints = this.#intsOf(slot);
    const at = placeOf(slot);
    doubles[at + MARK] = fullAtMicros > 0 ? fullAtMicros : -1 - takenMicros;
    doubles[at + COST] = refillMicros;
    ints[2 * at + AMOUNT] = amount;
    ints[2 * at + LIFETIME] = lifetimeMillis;
  }

  /**
   * Returns the time at which the hold was placed, on the clock of its rate. `endMicros` is the time at which it
   * expires.
   */
  takenMicrosOf(slot: Slot, endMicros: number): number {
    const mark = this.#doublesOf(slot)[placeOf(slot) + MARK] as number;
    return mark < 0 ? -1 - mark : endMicros - 1000 * this.lifetimeOf(slot);
  }

  fullAtMicrosOf(slot: Slot): number {
    return Math.max(0, this.#doublesOf(slot)[placeOf(slot) + MARK] as number);
  }

  refillMicrosOf(slot: Slot): number {
    return this.#doublesOf(slot)[placeOf(slot) + COST] as number;
  }

  idOf(slot: Slot): string {
    const at = 2 * placeOf(slot) + ID;
    return Buffer.from(this.#intsOf(slot).buffer, 4 * at, HOLD_ID_DIGITS / 2).toString('hex');
  }

  /** Number of hits; 0 for a further slot of a hold. */
  amountOf(slot: Slot): number {
    return (this.#intsOf(slot)[2 * placeOf(slot) + AMOUNT] as number) >>> 0;
  }

  lifetimeOf(slot: Slot): number {
    return (this.#intsOf(slot)[2 * placeOf(slot) + LIFETIME] as number) >>> 0;
  }

  isHoldOf(slot: Slot, { amount, lifetimeMillis, fullAtMicros, refillMicros = 0 }: HoldValues): boolean {
    return (
      this.amountOf(slot) === amount &&
      this.lifetimeOf(slot) === lifetimeMillis &&
      this.fullAtMicrosOf(slot) === fullAtMicros &&
      this.refillMicrosOf(slot) === refillMicros
    );
  }

  /** -1 if there is none. */
  beforeOf(slot: Slot): Slot {
    return this.#intsOf(slot)[2 * placeOf(slot) + BEFORE] as number;
  }

  /** -1 if there is none. */
  afterOf(slot: Slot): Slot {
    return this.#intsOf(slot)[2 * placeOf(slot) + AFTER] as number;
  }

  setBefore(slot: Slot, before: Slot): void {
    this.#intsOf(slot)[2 * placeOf(slot) + BEFORE] = before;
  }

  setAfter(slot: Slot, after: Slot): void {
    this.#intsOf(slot)[2 * placeOf(slot) + AFTER] = after;
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
