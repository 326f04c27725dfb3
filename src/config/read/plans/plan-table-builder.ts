import {
  HASH,
  hashOfKey,
  LINE,
  type PlanHead,
  type PlanKeys,
  type PlanTable,
  rowsOf,
  SLOT_WORDS,
  START,
  VALUES,
} from '../../../policy/plans/plan-table.js';

/** Largest UTF-16 unit that fits in one byte. */
const MAX_BYTE = 0xff;
/** Initial sizes of the arrays. The number of slots is a power of two. */
const FIRST_UNITS = 1024;
const FIRST_SLOTS = 128;

/** Collects the rows of a table, in the form in which the table stores them. */
export class PlanTableBuilder implements PlanKeys {
  rows = 0;
  /** At most three quarters of the slots are in use. */
  slots = new Uint32Array(FIRST_SLOTS * SLOT_WORDS);
  keys: Uint8Array | Uint16Array = new Uint8Array(FIRST_UNITS);
  maxKeyUnits = 0;
  #units = 0;
  readonly #width: number;
  readonly #values: number[] = [];
  readonly #indexes = new Map<string, number>();

  /** `width` is the number of columns of values. All values in the first row are absent at first. */
  constructor(width: number) {
    this.#width = width;
    this.#values.push(...new Array<number>(width).fill(Number.NaN));
  }

  /** Returns the index of a row of values. Equal rows share one index. */
  indexOf(values: readonly number[]): number {
    const name = values.join(' ');
    const known = this.#indexes.get(name);
    if (known !== undefined) return known;
    const index = this.#values.length / this.#width;
    for (const value of values) this.#values.push(value);
    this.#indexes.set(name, index);
    return index;
  }

  /** Uses the values at `index` for customers without a row. */
  setStandard(index: number): void {
    for (let i = 0; i < this.#width; i++) {
      this.#values[i] = this.#values[index * this.#width + i] as number;
    }
    this.#indexes.set(this.#values.slice(0, this.#width).join(' '), 0);
  }

  /** Adds a row for a key that has no row yet. A key has at most MAX_KEY_UNITS. */
  addRow(key: string, index: number, line: number): void {
    if (++this.rows * 4 * SLOT_WORDS > this.slots.length * 3) this.#growSlots();
    const hash = hashOfKey(key);
    const at = freeSlot(this.slots, hash);
    this.slots[at + HASH] = hash;
    this.slots[at + START] = this.#addKey(key);
    this.slots[at + VALUES] = index;
    this.slots[at + LINE] = line;
  }

  /** Appends a key to `keys`. Returns the position of its first unit. */
  #addKey(key: string): number {
    const start = this.#units + 1;
    const end = start + key.length;
    if (end > this.keys.length) this.keys = resized(this.keys, 2 * end);
    this.keys[start - 1] = key.length - 1;
    for (let i = 0; i < key.length; i++) {
      const unit = key.charCodeAt(i);
      if (unit > MAX_BYTE && this.keys instanceof Uint8Array) this.keys = Uint16Array.from(this.keys);
      this.keys[start + i] = unit;
    }
    this.maxKeyUnits = Math.max(this.maxKeyUnits, key.length);
    this.#units = end;
    return start;
  }

  #growSlots(): void {
    const before = this.slots;
    this.slots = new Uint32Array(2 * before.length);
    for (const row of rowsOf({ slots: before })) {
      const at = freeSlot(this.slots, before[row + HASH] as number);
      this.slots.set(before.subarray(row, row + SLOT_WORDS), at);
    }
  }

  /** Returns the table, in shared memory. */
  finish(head: Omit<PlanHead, 'rowCount' | 'maxKeyUnits'>): PlanTable {
    const { rows, maxKeyUnits } = this;
    return {
      ...head,
      rowCount: rows,
      maxKeyUnits,
      slots: shared(this.slots, this.slots.length),
      keys: shared(this.keys, this.#units),
      values: shared(Float64Array.from(this.#values), this.#values.length),
    };
  }
}

/** Returns the position of the first free slot for a hash. */
function freeSlot(slots: Uint32Array, hash: number): number {
  const last = slots.length - SLOT_WORDS;
  let at = Math.imul(hash, SLOT_WORDS) & last;
  while (slots[at + START] !== 0) at = (at + SLOT_WORDS) & last;
  return at;
}

type Numbers = Uint8Array | Uint16Array | Uint32Array | Float64Array;

function resized<Items extends Numbers>(items: Items, length: number): Items {
  const larger = emptyLike(items, new ArrayBuffer(length * items.BYTES_PER_ELEMENT));
  larger.set(items);
  return larger;
}

/** Returns the first items in shared memory. */
function shared<Items extends Numbers>(items: Items, length: number): Items {
  const copy = emptyLike(items, new SharedArrayBuffer(length * items.BYTES_PER_ELEMENT));
  copy.set(items.subarray(0, length));
  return copy;
}

function emptyLike<Items extends Numbers>(items: Items, memory: ArrayBuffer | SharedArrayBuffer): Items {
  return new (items.constructor as new (memory: ArrayBufferLike) => Items)(memory);
}
