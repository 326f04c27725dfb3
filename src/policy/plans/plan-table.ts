/*
 * The rows of `plans`: the values that the limits of each customer have. The table is plain data in shared memory, so
 * that threads pass it on without copying it. A row takes its key and about 25 bytes.
 */

/** The first columns of the values: the plan of a row, and settings for all limits that use it. */
export const PLAN_FLAGS = ['plan', 'unlimited', 'blocked', 'phase'] as const;
/** Indexes of these columns. */
export const [PLAN, UNLIMITED, BLOCKED, PHASE] = [0, 1, 2, 3] as const;

/** Index of the first column whose name the policy chooses. */
export const FIRST_COLUMN = PLAN_FLAGS.length;

/** The parts of a table that may be large, by name. */
export interface PlanParts {
  /** The keys of all rows, one after the other, in UTF-16 units; single bytes if all units fit. */
  readonly keys: Uint8Array | Uint16Array;
  /** The end of the key of each row in `keys`. */
  readonly ends: Uint32Array;
  /**
   * A hash table with linear probing, whose length is a power of two. The bits of {@link SLOT_ROW} have the number of a
   * row, from 1, or 0. The other bits are those of the hash, so that other rows need not be read.
   */
  readonly slots: Uint32Array;
  /** The values of each row, as an index into `values`, in rows of values. */
  readonly valuesOf: Uint32Array;
  /** The line of each row in the file. */
  readonly lines: Uint32Array;
  /**
   * All distinct rows of values: the columns of {@link PLAN_FLAGS}, then {@link PlanHead.columns}. NaN: no value. The
   * first row has the values of customers without a row.
   */
  readonly values: Float64Array;
}

/** A plan of `define`, to be shown. */
export interface PlanDefinition {
  readonly name: string;
  /** Values as written, by name. */
  readonly values: Readonly<Record<string, string>>;
}

/** The types of values that fields of a limit take from a plan. */
export type ColumnKind = 'count' | 'duration' | 'unit';

/** The small part of a table. */
export interface PlanHead {
  /** Key of the entry whose value selects a row. */
  readonly by: string;
  /** File of the rows as named by the policy file; '' if the rows are the plans of the policy. */
  readonly file: string;
  /** Names of the values that limits use. */
  readonly columns: readonly string[];
  /** Types of these values. */
  readonly kinds: readonly ColumnKind[];
  /** The plans of `define`. Rows have their index. */
  readonly plans: readonly PlanDefinition[];
  /** Name of the plan of customers without a row; undefined without one. */
  readonly standard: string | undefined;
  /** Largest share of rows that a new file may lack, in percent. */
  readonly maxDrop: number;
  /** Length of the longest key, in UTF-16 units. */
  readonly maxKeyUnits: number;
  /** Whether a row or a plan of `define` blocks customers. */
  readonly hasBlocked: boolean;
  /** Number of rows that were refused. If they were valid before, the table has their previous values. */
  readonly refused: number;
  /** Number of customers whose row in the previous version was removed. */
  readonly lost: number;
  /** Digest of the file; '' if the rows are the plans of the policy. */
  readonly digest: string;
  /** When the file was read, in milliseconds of the wall clock. */
  readonly readAtMillis: number;
}

/** The rows of the plans of one domain. */
export interface PlanTable extends PlanHead, PlanParts {}

/** Names of the parts, in the order in which they are sent. */
export const PLAN_PARTS = ['keys', 'ends', 'slots', 'valuesOf', 'lines', 'values'] as const;

/** Returns the number of rows. */
export function rowCount({ ends }: Pick<PlanTable, 'ends'>): number {
  return ends.length;
}

const HASH_START = 0x811c_9dc5;
const HASH_PRIME = 0x0100_0193;

/** Bits of a slot that have the number of the row. */
export const SLOT_ROW = 0x1f_ffff;

/** Returns a hash of the whole key: FNV-1a over its UTF-16 units. Only the operator chooses the keys in the table. */
export function hashOfKey(key: string): number {
  let hash = HASH_START;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), HASH_PRIME);
  return hash ^ (hash >>> 15);
}

/** The parts of a table that find a row. The keys and ends may have space for more rows. */
export type PlanKeys = Pick<PlanTable, 'keys' | 'ends' | 'slots' | 'maxKeyUnits'>;

/** Returns the row of a key, from 0; -1 without a row. */
export function findRow(table: PlanKeys, key: string): number {
  const { slots, keys, ends, maxKeyUnits } = table;
  // Callers may send any value, so a long one is not hashed.
  if (key.length > maxKeyUnits || ends.length === 0) return -1;
  const mask = slots.length - 1;
  const hash = hashOfKey(key);
  for (let at = hash & mask; ; at = (at + 1) & mask) {
    const slot = slots[at] as number;
    if (slot === 0) return -1;
    if (((slot ^ hash) & ~SLOT_ROW) !== 0) continue;
    const row = (slot & SLOT_ROW) - 1;
    const start = row === 0 ? 0 : (ends[row - 1] as number);
    if ((ends[row] as number) - start !== key.length) continue;
    let unit = 0;
    while (unit < key.length && keys[start + unit] === key.charCodeAt(unit)) unit++;
    if (unit === key.length) return row;
  }
}

/** Returns the key of a row. */
export function keyOfRow({ keys, ends }: PlanTable, row: number): string {
  const start = row === 0 ? 0 : (ends[row - 1] as number);
  let key = '';
  for (let at = start; at < (ends[row] as number); at++) key += String.fromCharCode(keys[at] as number);
  return key;
}

/** Returns the number of columns of `values`. */
export function planWidth({ columns }: Pick<PlanHead, 'columns'>): number {
  return FIRST_COLUMN + columns.length;
}

/** Returns one row of values. */
export function valuesAt(table: PlanTable, index: number): Float64Array {
  const width = planWidth(table);
  return table.values.subarray(index * width, (index + 1) * width);
}

/** Returns whether a row of values sets {@link UNLIMITED} or {@link BLOCKED}. Without a value, the column is NaN. */
export function isSet(values: ArrayLike<number>, column: typeof UNLIMITED | typeof BLOCKED): boolean {
  return values[column] === 1;
}

/** Returns the values of a row, as an index for {@link valuesAt}. Without a row, those of the default. */
export function valuesIndexOf({ valuesOf }: PlanTable, row: number): number {
  return row < 0 ? 0 : (valuesOf[row] as number);
}
