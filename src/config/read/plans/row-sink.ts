import { shownStart } from '../../../runtime/shown-address.js';
import type { Position } from '../../yaml/config-problem.js';
import { type Cells, nearColumn } from './plan-columns.js';

/** Receives the rows of a table. */
export interface RowSink {
  /** Key of the entry whose value selects the row. The column with the customers has the same name. */
  readonly by: string;
  /** Names of the cells of a row. */
  readonly cells: readonly string[];
  /** The columns to read (`columns` of `plans`); undefined if all columns must be known. */
  readonly readColumns: readonly string[] | undefined;
  /**
   * Returns the index of the cell that a column fills; undefined for an unknown column. The column {@link by} fills no
   * cell.
   */
  cellOf(column: string): number | 'ignored' | undefined;
  /**
   * Adds a row.
   *
   * @param placeOf returns the position of a cell, or of the row for -1
   */
  add(key: string, cells: Cells, line: number, placeOf: (cell: number) => Position): void;
  /** Refuses a row that cannot be read; its key may be unknown. */
  refuse(key: string | undefined, at: Position, path: string, message: string): void;
}

/** Returns the message for a column that no limit uses. `what` is the name of the column in the message. */
export function unknownColumn(column: string, what: string, known: readonly string[]): string {
  const near = nearColumn(column, known);
  const stop = near.endsWith('?') ? '' : '.';
  return `no limit uses ${what}; ${near}${stop} To ignore other columns, list those to read as "columns" of "plans"`;
}

/**
 * Adds a row of named values: texts, other scalars of JSON, and null for an absent value.
 *
 * @param placeOf see {@link RowSink.add}
 */
export function addFields(
  key: string,
  fields: Readonly<Record<string, unknown>>,
  sink: RowSink,
  line: number,
  placeOf: (cell: number) => Position,
): void {
  const cells = new Array<string | undefined>(sink.cells.length).fill(undefined);
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    const cell = sink.cellOf(name);
    if (cell === 'ignored') continue;
    if (cell === undefined) {
      sink.refuse(key, placeOf(-1), '', unknownColumn(name, `the value "${shownStart(name)}"`, sink.cells));
      return;
    }
    if (value === null) continue;
    if (typeof value === 'object') {
      sink.refuse(key, placeOf(cell), name, `"${name}" must be a single value`);
      return;
    }
    cells[cell] = String(value);
  }
  sink.add(key, cells, line, placeOf);
}
