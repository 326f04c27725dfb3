import {
  hashOfKey,
  type PlanHead,
  type PlanKeys,
  type PlanTable,
  SLOT_ROW,
} from '../../../policy/plans/plan-table.js';

/** Largest UTF-16 unit of keys with one byte per unit. */
const MAX_BYTE = 0xff;
/** Length of the first arrays; powers of two. */
const FIRST_UNITS = 1024;
const FIRST_ROWS = 64;

/** Collects the rows of a table, in the form in which a table has them. */
export class PlanTableBuilder implements PlanKeys {
  rows = 0;
  keys: Uint8Array | Uint16Array = new Uint8Array(FIRST_UNITS);
  ends = new Uint32Array(FIRST_ROWS);
  /** At most half of the slots are in use. */
  slots = new Uint32Array(2 * FIRST_ROWS);
  maxKeyUnits = 0;
  #hashes = new Uint32Array(FIRST_ROWS);
  #valuesOf = new Uint32Array(FIRST_ROWS);
  #lines = new Uint32Array(FIRST_ROWS);
  readonly #width: number;
  readonly #values: number[] = [];
  readonly #indexes = new Map<string, number>();

  /** `width` is the number of columns of values. The first row of values has none. */
  constructor(width: number) {
    this.#width = width;
    this.#values.push(...new Array<number>(width).fill(Number.NaN));
  }

  /** Returns the line of a row. */
  lineOf(row: number): number {
    return this.#lines[row] as number;
  }

  /** Returns the index of a row of values, which equal rows share. */
  indexOf(values: readonly number[]): number {
    const name = values.join(' ');
    const known = this.#indexes.get(name);
    if (known !== undefined) return known;
    const index = this.#values.length / this.#width;
    for (const value of values) this.#values.push(value);
    this.#indexes.set(name, index);
    return index;
  }

  /** Makes the values at `index` those of customers without a row. */
  setStandard(index: number): void {
    for (let i = 0; i < this.#width; i++) {
      this.#values[i] = this.#values[index * this.#width + i] as number;
    }
    this.#indexes.set(this.#values.slice(0, this.#width).join(' '), 0);
  }

  /** Adds a row whose key has none yet. */
  addRow(key: string, index: number, line: number): void {
    const row = this.rows++;
    if (row === this.ends.length) this.#growRows(row);
    this.ends[row] = this.#addKey(key, row === 0 ? 0 : (this.ends[row - 1] as number));
    this.#valuesOf[row] = index;
    this.#lines[row] = line;
    this.#hashes[row] = hashOfKey(key);
    this.#fillSlot(row);
  }

  /** Appends a key to the others. Returns its end. */
  #addKey(key: string, start: number): number {
    const end = start + key.length;
    if (end > this.keys.length) this.keys = resized(this.keys, 2 * end);
    for (let i = 0; i < key.length; i++) {
      const unit = key.charCodeAt(i);
      if (unit > MAX_BYTE && this.keys instanceof Uint8Array) this.keys = Uint16Array.from(this.keys);
      this.keys[start + i] = unit;
    }
    this.maxKeyUnits = Math.max(this.maxKeyUnits, key.length);
    return end;
  }

  #growRows(rows: number): void {
    this.ends = resized(this.ends, 2 * rows);
    this.#hashes = resized(this.#hashes, 2 * rows);
    this.#valuesOf = resized(this.#valuesOf, 2 * rows);
    this.#lines = resized(this.#lines, 2 * rows);
    this.slots = new Uint32Array(4 * rows);
    for (let row = 0; row < rows; row++) this.#fillSlot(row);
  }

  #fillSlot(row: number): void {
    const { slots } = this;
    const mask = slots.length - 1;
    const hash = this.#hashes[row] as number;
    let slot = hash & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = (hash & ~SLOT_ROW) | (row + 1);
  }

  /** Returns the table, in shared memory. */
  finish(head: Omit<PlanHead, 'maxKeyUnits'>): PlanTable {
    const { rows, maxKeyUnits } = this;
    return {
      ...head,
      maxKeyUnits,
      keys: shared(this.keys, rows === 0 ? 0 : (this.ends[rows - 1] as number)),
      ends: shared(this.ends, rows),
      slots: shared(this.slots, this.slots.length),
      valuesOf: shared(this.#valuesOf, rows),
      lines: shared(this.#lines, rows),
      values: shared(Float64Array.from(this.#values), this.#values.length),
    };
  }
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
