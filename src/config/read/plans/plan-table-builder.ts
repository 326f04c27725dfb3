import { hashOfKey, type PlanHead, type PlanTable } from '../../../policy/plans/plan-table.js';

/** Largest UTF-16 unit of keys with one byte per unit. */
const MAX_BYTE = 0xff;

/** Collects the rows of a table. */
export class PlanTableBuilder {
  /** Row and line by key; dropped with the builder. */
  readonly #rows = new Map<string, number>();
  readonly #valuesOf: number[] = [];
  readonly #lines: number[] = [];
  readonly #width: number;
  readonly #values: number[] = [];
  readonly #indexes = new Map<string, number>();

  /** `width` is the number of columns of values. The first row of values has none. */
  constructor(width: number) {
    this.#width = width;
    this.#values.push(...new Array<number>(width).fill(Number.NaN));
  }

  get rows(): number {
    return this.#rows.size;
  }

  has(key: string): boolean {
    return this.#rows.has(key);
  }

  /** Returns the line of a row. */
  lineOf(key: string): number {
    return this.#lines[this.#rows.get(key) ?? -1] ?? 0;
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

  addRow(key: string, index: number, line: number): void {
    this.#rows.set(key, this.#rows.size);
    this.#valuesOf.push(index);
    this.#lines.push(line);
  }

  /** Returns the table, in shared memory. */
  finish(head: Omit<PlanHead, 'maxKeyUnits'>): PlanTable {
    const rows = this.#rows.size;
    let units = 0;
    let maxKeyUnits = 0;
    let isByte = true;
    for (const key of this.#rows.keys()) {
      units += key.length;
      maxKeyUnits = Math.max(maxKeyUnits, key.length);
      for (let i = 0; isByte && i < key.length; i++) isByte = key.charCodeAt(i) <= MAX_BYTE;
    }
    const keys = isByte ? new Uint8Array(shared(units)) : new Uint16Array(shared(2 * units));
    const ends = new Uint32Array(shared(4 * rows));
    const slots = new Uint32Array(shared(4 * slotCount(rows)));
    let at = 0;
    let row = 0;
    for (const key of this.#rows.keys()) {
      for (let i = 0; i < key.length; i++) keys[at++] = key.charCodeAt(i);
      ends[row++] = at;
      let slot = hashOfKey(key) & (slots.length - 1);
      while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
      slots[slot] = row;
    }
    const valuesOf = new Uint32Array(shared(4 * rows));
    valuesOf.set(this.#valuesOf);
    const lines = new Uint32Array(shared(4 * rows));
    lines.set(this.#lines);
    const values = new Float64Array(shared(8 * this.#values.length));
    values.set(this.#values);
    return { ...head, maxKeyUnits, keys, ends, slots, valuesOf, lines, values };
  }
}

/** Returns the number of slots for a number of rows, which use at most two thirds of them. */
function slotCount(rows: number): number {
  let slots = 1;
  while (slots * 2 < rows * 3 + 1) slots *= 2;
  return slots;
}

function shared(bytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer(bytes);
}
