/*
 * The rows of `plans`, which contain the values of each customer's limits. The table is plain data in shared memory, so
 * that threads can pass it on without copying it. A row needs 22 to 44 bytes in addition to its key.
 */

/**
 * The first columns of the values: the plan of a row, and settings that apply to all limits with values from the plan.
 */
export const PLAN_FLAGS = ['plan', 'unlimited', 'blocked', 'phase'] as const;
/** Indexes of these columns. */
export const [PLAN, UNLIMITED, BLOCKED, PHASE] = [0, 1, 2, 3] as const;

/** Index of the first column whose name the policy chooses. */
export const FIRST_COLUMN = PLAN_FLAGS.length;

/** The parts of a table that may be large, by name. */
export interface PlanParts {
  /**
   * A hash table with linear probing. A slot has {@link SLOT_WORDS} numbers. They are stored next to each other,
   * because each access to another part of a large table would have to wait for the memory.
   *
   * - the hash of the key
   * - the start of the key in `keys`, from 1. An empty slot has 0.
   * - the values, as an index into `values`, in rows of values
   * - the line in the file
   */
  readonly slots: Uint32Array;
  /** The key of each row: its length minus 1, then its UTF-16 units. The elements are single bytes if all units fit. */
  readonly keys: Uint8Array | Uint16Array;
  /**
   * All distinct rows of values: the columns of {@link PLAN_FLAGS}, then those of {@link PlanHead.columns}. NaN means
   * that there is no value. The first row has the values for customers without a row.
   */
  readonly values: Float64Array;
}

/** A plan of `define`, in the form that is shown to operators. */
export interface PlanDefinition {
  readonly name: string;
  /** Values as written, by name. */
  readonly values: Readonly<Record<string, string>>;
}

/** The types of values that fields of a limit can read from a plan. */
export type ColumnKind = 'count' | 'duration' | 'unit';

/** The small part of a table. */
export interface PlanHead {
  /** Key of the entry whose value selects a row. */
  readonly by: string;
  /** File of the rows, as it is written in the policy file; '' if the rows are the plans of the policy. */
  readonly file: string;
  /** Names of the values that limits use. */
  readonly columns: readonly string[];
  /** Types of these values. */
  readonly kinds: readonly ColumnKind[];
  /** The plans of `define`. Rows contain the index of their plan. */
  readonly plans: readonly PlanDefinition[];
  /** Name of the plan of customers without a row; undefined if there is no default plan. */
  readonly standard: string | undefined;
  /** Largest percentage of rows that a new version of the table may lack. */
  readonly maxDrop: number;
  /** Number of rows in effect from which {@link maxDrop} applies. */
  readonly maxDropFrom: number;
  /** Names of the columns that are read in addition to {@link by}; undefined if all columns must be known. */
  readonly readColumns: readonly string[] | undefined;
  readonly rowCount: number;
  /** Length of the longest key, in UTF-16 units. */
  readonly maxKeyUnits: number;
  /** Whether a row or a plan of `define` blocks customers. */
  readonly hasBlocked: boolean;
  /** Whether a row or a plan of `define` sets the phase `active`. */
  readonly hasActive: boolean;
  /**
   * Number of refused rows. If a customer had a valid row before, the table contains the previous values of that row.
   */
  readonly refused: number;
  /** Number of customers whose row in the previous version was removed. */
  readonly lost: number;
  /** Digest of the file; '' if the rows are the plans of the policy. */
  readonly digest: string;
  /** Time at which the file was read, in milliseconds of the wall clock. */
  readonly readAtMillis: number;
}

/** The rows of the plans of one domain. */
export interface PlanTable extends PlanHead, PlanParts {}

/** Maximum length of a key, in UTF-16 units, so that its length fits in a byte. */
export const MAX_KEY_UNITS = 256;

/** Number of words in a slot, and the position of each word. */
const SLOT_WORDS = 4;
const [HASH, START, VALUES, LINE] = [0, 1, 2, 3] as const;

const HASH_START = 0x811c_9dc5;
const HASH_PRIME = 0x0100_0193;

/**
 * Returns a hash of the whole key: FNV-1a over its UTF-16 units. The hash needs no secret, because only the operator
 * chooses the keys in the table.
 */
function hashOfKey(key: string): number {
  let hash = HASH_START;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), HASH_PRIME);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** The parts of a table that find a row. */
export type PlanKeys = Pick<PlanTable, 'slots' | 'keys' | 'maxKeyUnits'>;

/** Returns the row of a key, as the position of its slot in `slots`; -1 if the key has no row. */
export function findRow({ slots, keys, maxKeyUnits }: PlanKeys, key: string): number {
  // Callers may send values of any length, so values that are too long for a key are not hashed.
  if (key.length > maxKeyUnits) return -1;
  const last = slots.length - SLOT_WORDS;
  const hash = hashOfKey(key);
  for (let at = Math.imul(hash, SLOT_WORDS) & last; ; at = (at + SLOT_WORDS) & last) {
    const start = slots[at + START] as number;
    if (start === 0) return -1;
    if (slots[at + HASH] !== hash || keys[start - 1] !== key.length - 1) continue;
    let unit = 0;
    while (unit < key.length && keys[start + unit] === key.charCodeAt(unit)) unit++;
    if (unit === key.length) return at;
  }
}

/** Yields all rows, each as the position of its slot. */
export function* rowsOf({ slots }: Pick<PlanTable, 'slots'>): Generator<number> {
  for (let at = 0; at < slots.length; at += SLOT_WORDS) if (slots[at + START] !== 0) yield at;
}

/** Returns whether a new version of a table lacks so many rows that it is probably incomplete. */
export function dropsTooMany(
  { maxDrop, maxDropFrom }: Pick<PlanHead, 'maxDrop' | 'maxDropFrom'>,
  lost: number,
  before: number,
): boolean {
  return before >= maxDropFrom && lost * 100 > maxDrop * before;
}

export function keyOfRow({ slots, keys }: Pick<PlanTable, 'slots' | 'keys'>, row: number): string {
  const start = slots[row + START] as number;
  const end = start + (keys[start - 1] as number) + 1;
  let key = '';
  for (let at = start; at < end; at++) key += String.fromCharCode(keys[at] as number);
  return key;
}

/** The line of a row in its file. */
export function lineOfRow({ slots }: Pick<PlanTable, 'slots'>, row: number): number {
  return slots[row + LINE] as number;
}

function planWidth({ columns }: Pick<PlanHead, 'columns'>): number {
  return FIRST_COLUMN + columns.length;
}

/** One row of values, as a view of the table. `index`: see {@link valuesIndexOf}. */
export function valuesAt(table: PlanTable, index: number): Float64Array {
  const width = planWidth(table);
  return table.values.subarray(index * width, (index + 1) * width);
}

/** Returns the values of a row. If there is no row (-1), returns those of the default. */
export function valuesOfRow(table: PlanTable, row: number): Float64Array {
  return valuesAt(table, valuesIndexOf(table, row));
}

/**
 * Returns whether a row of values sets {@link UNLIMITED} or {@link BLOCKED}. If the row has no value, the column is
 * NaN.
 */
export function isSet(values: ArrayLike<number>, column: typeof UNLIMITED | typeof BLOCKED): boolean {
  return values[column] === 1;
}

/** Returns the values of a row, as an index for {@link valuesAt}. If there is no row, returns those of the default. */
export function valuesIndexOf({ slots }: Pick<PlanTable, 'slots'>, row: number): number {
  return row < 0 ? 0 : (slots[row + VALUES] as number);
}

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

  /** Equal rows share one index. */
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

  /** The table is in shared memory. */
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
