import { PLAN_PARTS, type PlanHead, type PlanParts, type PlanTable } from './plan-table.js';

/** A table without the content of its parts, as plain data. */
export interface PlanLayout {
  readonly head: PlanHead;
  /** Length of each part in bytes. */
  readonly sizes: Readonly<Record<keyof PlanParts, number>>;
  /** Whether `keys` has single bytes. */
  readonly isByte: boolean;
}

/** Returns the layout of a table. */
export function planLayout(table: PlanTable): PlanLayout {
  const { slots, keys, values, ...head } = table;
  const sizes = Object.fromEntries(PLAN_PARTS.map((part) => [part, table[part].byteLength]));
  return { head, sizes: sizes as PlanLayout['sizes'], isByte: keys instanceof Uint8Array };
}

/** Returns a table whose parts have their length, and no content yet. */
export function emptyPlans({ head, sizes, isByte }: PlanLayout): PlanTable {
  const memory = (part: keyof PlanParts): SharedArrayBuffer => new SharedArrayBuffer(sizes[part]);
  const keys = memory('keys');
  return {
    ...head,
    slots: new Uint32Array(memory('slots')),
    keys: isByte ? new Uint8Array(keys) : new Uint16Array(keys),
    values: new Float64Array(memory('values')),
  };
}
