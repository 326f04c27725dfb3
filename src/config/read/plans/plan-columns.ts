import { MAX_FILL_MICROS, MAX_UINT32 } from '../../../limiter/rate-algorithm.js';
import { WINDOW_UNITS, type WindowUnit } from '../../../limiter/window-unit.js';
import { type ColumnKind, FIRST_COLUMN, PLAN, PLAN_FLAGS } from '../../../policy/plans/plan-table.js';
import { PHASES, type Phase } from '../../../policy/rule.js';
import { nearest } from '../../../runtime/nearest-name.js';
import { safePrefix } from '../../../runtime/shown-address.js';
import { isNullText, joinPath } from '../../yaml/yaml-value.js';
import type { Fields } from '../field.js';
import type { FieldReader } from '../field-reader.js';
import { POLICY_FIELDS, RATE_FIELDS } from '../policy-fields.js';
import { AMBIGUOUS_POINT, readScalar, type ScalarKind, type ScalarValue } from '../scalar-kinds.js';

/** Matches numbers that YAML interprets differently from people and spreadsheets: `010`, `0x1F` and `1_000`. */
const NOT_DECIMAL = /^[-+]?0[0-9a-z_]|_/i;

/** The values that a column accepts. A limit that uses the column may have a larger minimum, and checks it. */
const VALUE_KINDS = {
  count: { kind: 'count', min: 0, max: MAX_UINT32, shownMin: 0 },
  duration: { kind: 'duration', min: 1, max: MAX_FILL_MICROS, step: 1, shownMin: 1 },
  unit: { kind: 'unit' },
} satisfies Record<ColumnKind, ScalarKind>;

export type ValueKind = (typeof VALUE_KINDS)[ColumnKind];

/**
 * The fields that can read their value from a plan, by their path in a limit. Messages contain the minimum of the
 * field.
 */
export const PLANNED_FIELDS: ReadonlyMap<string, ValueKind> = new Map(plannedFields(RATE_FIELDS, ''));

function* plannedFields(fields: Fields, place: string): Generator<readonly [path: string, kind: ValueKind]> {
  for (const [key, field] of Object.entries(fields)) {
    const path = joinPath(place, key);
    if (field.kind === 'mapping') yield* plannedFields(POLICY_FIELDS[field.of], path);
    else if (field.planned && field.kind === 'unit') yield [path, VALUE_KINDS.unit];
    else if (field.planned && (field.kind === 'count' || field.kind === 'duration')) {
      yield [path, { ...VALUE_KINDS[field.kind], shownMin: field.min }];
    }
  }
}

/** The values of {@link PLAN_FLAGS}, except `plan`. */
const FLAG_KINDS = {
  unlimited: { kind: 'flag' },
  blocked: { kind: 'flag' },
  phase: { kind: 'word', words: PHASES },
} as const satisfies Record<string, ScalarKind>;

/** What a plan in `define` may set: a value of a column, or one of {@link PLAN_FLAGS}. */
export type PlanNumberKind = ValueKind | keyof typeof FLAG_KINDS;

/** The kinds of all cells except `plan`. */
type CellKind = ValueKind | (typeof FLAG_KINDS)[keyof typeof FLAG_KINDS];

function numberOf(value: ScalarValue<CellKind>): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  return Math.max(PHASES.indexOf(value as Phase), WINDOW_UNITS.indexOf(value as WindowUnit));
}

/** Returns the text of a number from a table, as an operator would write it in a limit. */
export function textOfNumber({ kind }: ValueKind, number: number): string {
  if (kind === 'unit') return WINDOW_UNITS[number] as string;
  return kind === 'duration' ? `${number}us` : String(number);
}

/**
 * Reads a number from the policy: a value of a plan in `define`, or the `default` of a field. Returns NaN if the field
 * is absent. Reports an invalid value, and returns undefined.
 */
export function readPlanNumber(reader: FieldReader, key: string, kind: PlanNumberKind): number | undefined {
  if (reader.field(key) === undefined) return Number.NaN;
  const value = reader.scalar<CellKind>(key, typeof kind === 'string' ? FLAG_KINDS[kind] : kind);
  return value === undefined ? undefined : numberOf(value);
}

/** The cells of a row as written, in the order of {@link PlanColumns.cells}; undefined if a cell has no value. */
export type Cells = readonly (string | undefined)[];

/**
 * The numbers of a row, in the same order; NaN if a cell has no value. A plan is represented by its index in `define`.
 */
export type RowValues = readonly number[];

export interface RowProblem {
  /** The cell of the row, or -1. */
  readonly cell: number;
  readonly message: string;
}

/** Returns the first problem that a limit has with the values of a row. */
export type LimitCheck = (values: RowValues) => RowProblem | undefined;

/** The columns of a table: {@link PLAN_FLAGS}, and the values that the limits of the domain use. */
export class PlanColumns {
  readonly names: string[] = [];
  readonly values: ValueKind[] = [];

  /**
   * Adds the column of a value, unless it exists. Returns its index, or undefined if it exists with a different kind.
   */
  add(name: string, kind: ValueKind): number | undefined {
    const at = this.names.indexOf(name);
    const known = this.values[at];
    if (known === undefined) {
      this.values.push(kind);
      return this.names.push(name) - 1;
    }
    if (known.kind !== kind.kind) return undefined;
    if ('shownMin' in kind && 'shownMin' in known && kind.shownMin > known.shownMin) this.values[at] = kind;
    return at;
  }

  get kinds(): readonly ColumnKind[] {
    return this.values.map(({ kind }) => kind);
  }

  /** Names of all cells of a row. */
  get cells(): readonly string[] {
    return [...PLAN_FLAGS, ...this.names];
  }

  /**
   * Replaces `values`, which are those of the row's plan, with the values of the row's cells. Returns the first
   * problem.
   */
  read(cells: Cells, values: number[]): RowProblem | undefined {
    for (let cell = PLAN + 1; cell < values.length; cell++) {
      const text = cells[cell];
      if (text === undefined) continue;
      const name = this.cells[cell] as string;
      const kind = this.#kindOf(cell);
      if (kind.kind === 'count' && (NOT_DECIMAL.test(text) || AMBIGUOUS_POINT.test(text))) {
        const said = `"${name}" is "${safePrefix(text)}"`;
        return { cell, message: `${said}; write digits only, without leading zeros and separators` };
      }
      // Quotes do not matter, because many programs quote all cells. Only a quoted null is a text.
      const read = readScalar<CellKind>(kind, { text, plain: !isNullText(text) }, name);
      if (read.problem !== undefined) return { cell, message: read.problem };
      values[cell] = numberOf(read.value);
    }
    return undefined;
  }

  #kindOf(cell: number): CellKind {
    const flag = PLAN_FLAGS[cell];
    if (flag !== undefined && flag !== 'plan') return FLAG_KINDS[flag];
    return this.values[cell - FIRST_COLUMN] as ValueKind;
  }
}

/** Returns the end of a message about an unknown column or value. */
export function nearColumn(name: string, columns: readonly string[]): string {
  const near = nearest(name, columns);
  return near === undefined ? `the known columns are ${columns.join(', ')}` : `did you mean "${near}"?`;
}
