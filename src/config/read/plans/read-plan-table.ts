import { describeDrop } from '../../../policy/describe.js';
import {
  BLOCKED,
  dropsTooMany,
  FIRST_COLUMN,
  findRow,
  isSet,
  keyOfRow,
  lineOfRow,
  MAX_KEY_UNITS,
  PHASE,
  PLAN,
  PLAN_FLAGS,
  type PlanTable,
  PlanTableBuilder,
  rowsOf,
  UNLIMITED,
  valuesIndexOf,
  valuesOfRow,
} from '../../../policy/plans/plan-table.js';
import { PHASES } from '../../../policy/rule.js';
import { nearest } from '../../../runtime/nearest-name.js';
import { safePrefix } from '../../../runtime/shown-address.js';
import { workingDirectoryHint } from '../../../runtime/working-directory.js';
import { type Position, ProblemList, WHOLE_FILE } from '../../yaml/config-problem.js';
import { MAX_PLAN_ROWS } from '../policy-fields.js';
import type { TableFiles } from '../read-derive.js';
import type { Cells, RowProblem, RowValues } from './plan-columns.js';
import { MAX_PLAN_BYTES, type RowSink, readPlanRows } from './plan-rows.js';
import { isRedisAddress, type PlansReader } from './read-plans.js';

/** Maximum number of combinations of cells whose check is remembered. Further combinations are checked again. */
const MAX_CHECKED = 100_000;
/** Value of the column of phases for the phase `active`. */
const ACTIVE = PHASES.indexOf('active');

/** Options of {@link readPlanTable}. */
export interface PlanTableOptions {
  readonly files: TableFiles;
  /**
   * The last valid rows. Refused rows keep their values from these rows, and all of them stay in effect while the file
   * is invalid.
   */
  readonly previous: PlanTable | undefined;
  /** Whether a refused row is an error instead of a warning. */
  readonly badRowsAreErrors: boolean;
  /**
   * Whether the policy is read by a server, where all customers have the default if no rows can be used. In a command,
   * a table that cannot be used is an error. Commands do not read rows in Redis, so all customers then have the
   * default.
   */
  readonly isServer: boolean;
  /** The secret keys of all domains, which cannot select rows. */
  readonly secretKeys: ReadonlySet<string>;
}

/** The rows of `plans`, and the problems of the file that contains them. */
export interface ReadPlanTable {
  /** Undefined in a command if neither the file nor earlier rows can be used. */
  readonly table: PlanTable | undefined;
  readonly file: ProblemList | undefined;
  /** Whether the file is invalid, so that `table` has the rows of its last valid version, or no rows. */
  readonly isKept: boolean;
}

/** Checks `plans`, and reads the rows, after all limits that use them. */
export function readPlanTable(plans: PlansReader, options: PlanTableOptions): ReadPlanTable {
  plans.refuseSecret(options.secretKeys);
  plans.checkNames();
  const read = readTable(plans, options);
  if (read.table?.hasBlocked === true) plans.warnOfBlocked();
  return read;
}

function readTable(plans: PlansReader, options: PlanTableOptions): ReadPlanTable {
  const rows = new RowReader(plans, options);
  if (plans.file === undefined) return { table: rows.finish(''), file: undefined, isKept: false };
  if (plans.isRefusedAddress) return { table: undefined, file: undefined, isKept: false };
  if (plans.isRemote && !options.isServer) {
    plans.reader.warn('from', 'the rows are not checked, because only a running weir reads them from Redis');
    return { table: rows.finish(''), file: undefined, isKept: false };
  }
  const problems = new ProblemList(plans.file);
  let bytes: Uint8Array | undefined;
  let unreadable = '';
  try {
    bytes = options.files.read(plans.file, MAX_PLAN_BYTES);
  } catch (error) {
    unreadable = unreadableMessage(plans, error);
  }
  if (bytes !== undefined) rows.readFile(plans.file, bytes, problems);
  problems.sort();
  if (bytes !== undefined && problems.errors.length === 0) {
    return { table: rows.finish(options.files.digestOf(plans.file)), file: problems, isKept: false };
  }
  const kept = lastRows(plans, options);
  if (kept === undefined && !options.isServer) {
    if (bytes === undefined) plans.reader.error('from', unreadable);
    return { table: undefined, file: problems, isKept: false };
  }
  const hasNoRowsYet = kept === undefined && plans.isRemote && bytes === undefined;
  if (hasNoRowsYet) problems.warn(WHOLE_FILE, '', unreadable);
  else if (bytes === undefined) problems.error(WHOLE_FILE, '', unreadable);
  const inEffect =
    kept === undefined
      ? 'all customers have the limits of customers without a row'
      : `the rows that were read at ${new Date(kept.readAtMillis).toISOString()} stay in effect`;
  problems.warn(WHOLE_FILE, '', `${inEffect} until ${plans.isRemote ? 'rows arrive' : 'the file is valid'}`);
  return { table: kept ?? new RowReader(plans, options).finish(''), file: problems, isKept: true };
}

/** Returns the last valid rows, adapted to the current limits; undefined if no rows are usable. */
function lastRows(plans: PlansReader, options: PlanTableOptions): PlanTable | undefined {
  if (options.previous === undefined || plans.reader.problems.errors.length > 0) return undefined;
  return new RowReader(plans, options).finishPrevious(options.previous);
}

/** Returns the message for a file that cannot be read. The path of the file is relative to the policy file. */
function unreadableMessage({ file = '', from }: PlansReader, error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const hint = workingDirectoryHint(file);
  return hint === '' ? message : message.replace(hint, `: "${from}" is relative to the policy file`);
}

/** Checks rows, and adds them to the table. */
class RowReader implements RowSink {
  readonly by: string;
  readonly cells: readonly string[];
  readonly readColumns: readonly string[] | undefined;
  /** Indexes of the cells that are read, by name. */
  readonly #cellOf: ReadonlyMap<string, number>;
  /** Columns of the file that have a special meaning, but are missing in `columns`. */
  readonly #ignoredFlags = new Set<string>();
  readonly #plans: PlansReader;
  readonly #options: PlanTableOptions;
  readonly #builder: PlanTableBuilder;
  readonly #planNames: readonly string[];
  /** Values of a row without a plan. */
  readonly #noValues: RowValues;
  /** Values of the plans of `define`, by name. */
  readonly #planValues = new Map<string, RowValues>();
  /** The combinations of cells that were checked, each with the index of its values, or its problem. */
  readonly #checked = new Map<string, number | RowProblem>();
  /** The rows in effect, if they also come from a file and have the same key column. */
  readonly #previous: PlanTable | undefined;
  #problems = new ProblemList('');
  /** Keys of refused rows. These customers keep their previous values, if they have any. */
  readonly #refusedKeys = new Set<string>();
  #refused = 0;
  #hasBlocked = false;
  #hasActive = false;
  /** Number of customers whose row is in effect, but missing in the file. */
  #lost = 0;

  constructor(plans: PlansReader, options: PlanTableOptions) {
    this.#plans = plans;
    this.#options = options;
    this.by = plans.by;
    this.cells = plans.columns.cells;
    this.readColumns = plans.readColumns;
    this.#cellOf = new Map(
      [...this.cells.entries()]
        .filter(([, name]) => plans.readColumns?.includes(name) ?? true)
        .map(([cell, name]) => [name, cell]),
    );
    this.#noValues = this.cells.map(() => Number.NaN);
    this.#planNames = [...plans.defined.keys()];
    this.#builder = new PlanTableBuilder(this.cells.length);
    const { previous } = options;
    const hasRows = plans.file !== undefined && previous?.by === plans.by && previous.file !== '';
    this.#previous = hasRows ? previous : undefined;
    this.#addPlans();
  }

  /** Checks the plans of `define`. If the policy has no file, they are also the rows. */
  #addPlans(): void {
    const { defined, columns, standard, file } = this.#plans;
    for (const [name, plan] of defined) {
      this.#planValues.set(name, [this.#planValues.size, ...plan.numbers(columns)]);
    }
    const standardIndex = this.#checkPlan(standard);
    if (standardIndex !== undefined) this.#builder.setStandard(standardIndex);
    for (const [name, plan] of defined) {
      const index = this.#checkPlan(name);
      // If a plan lacks some values, its rows must have them.
      if (index === undefined) continue;
      if (file === undefined) this.#builder.addRow(name, index, plan.reader.map.at.line);
    }
  }

  /** Returns the index of a plan's values, or undefined if it is incomplete or invalid. Reports invalid values. */
  #checkPlan(name: string | undefined): number | undefined {
    const plan = this.#plans.defined.get(name ?? '');
    if (plan === undefined || plan.isInvalid) return undefined;
    const checked = this.#check(this.#planValues.get(name as string) as RowValues);
    if (typeof checked === 'number') return checked;
    const { reader } = plan;
    const cell = this.cells[checked.cell];
    const isMissing = cell === undefined && this.#plans.file !== undefined && name !== this.#plans.standard;
    if (isMissing) return undefined;
    plan.isInvalid = true;
    if (cell !== undefined && reader.has(cell)) reader.error(cell, checked.message);
    else reader.problems.error(reader.map.at, reader.path, checked.message);
    return undefined;
  }

  readFile(file: string, bytes: Uint8Array, problems: ProblemList): void {
    this.#problems = problems;
    readPlanRows(file, bytes, this, problems);
    for (const name of this.#ignoredFlags) {
      const message = `"${name}" has no effect in this file, because "plans.columns" does not list it; add it there`;
      problems.warn(WHOLE_FILE, '', message);
    }
    if (problems.errors.length > 0 && !this.#options.badRowsAreErrors) return;
    const rows = this.#builder.rows + this.#refused;
    if (rows === 0 && problems.errors.length === 0) {
      problems.error(
        WHOLE_FILE,
        '',
        'the file has no rows, so every customer would get the default limits; write at least one row, or remove ' +
          '"from"',
      );
    } else if (rows > MAX_PLAN_ROWS) {
      problems.error(
        WHOLE_FILE,
        '',
        `the file has more than ${MAX_PLAN_ROWS} rows; remove rows that equal the default`,
      );
    } else if (this.#builder.rows === 0 && problems.errors.length === 0) {
      problems.error(
        WHOLE_FILE,
        '',
        `all rows of the file are invalid (${rows}); correct them, or restore the file`,
      );
    }
    this.#checkDrop();
  }

  /** Refuses a file that lacks too many of the customers whose rows are in effect. */
  #checkDrop(): void {
    const previous = this.#previous;
    if (previous === undefined) return;
    for (const row of rowsOf(previous)) {
      const key = keyOfRow(previous, row);
      if (findRow(this.#builder, key) < 0 && !this.#refusedKeys.has(key)) this.#lost++;
    }
    if (!dropsTooMany(this.#plans, this.#lost, previous.rowCount)) return;
    this.#problems.error(
      WHOLE_FILE,
      '',
      `${describeDrop(this.#plans, this.#lost, previous.rowCount)}, so the table is probably incomplete; restore it, ` +
        'or raise "plans.max_drop" if the rows were removed on purpose',
    );
  }

  cellOf(column: string): number | 'ignored' | undefined {
    const cell = this.#cellOf.get(column);
    if (cell !== undefined) return cell;
    if (this.readColumns === undefined && column !== this.by) return undefined;
    if ((PLAN_FLAGS as readonly string[]).includes(column)) this.#ignoredFlags.add(column);
    return 'ignored';
  }

  add(key: string, cells: Cells, line: number, placeOf: (cell: number) => Position): void {
    if (this.#builder.rows + this.#refused > MAX_PLAN_ROWS) {
      this.#refused++;
      return;
    }
    const bad = this.#badKey(key);
    if (bad !== undefined) {
      this.refuse(undefined, placeOf(-1), this.by, bad);
      return;
    }
    const other = findRow(this.#builder, key);
    if (other >= 0) {
      // HSCAN may return a field twice.
      if (isRedisAddress(this.#plans.file ?? '')) return;
      const first = lineOfRow(this.#builder, other);
      this.#report(
        placeOf(-1),
        this.by,
        `line ${first} has a row for the same customer, which weir uses; remove one of the two rows`,
      );
      return;
    }
    const checked = this.#checkRow(cells);
    if (typeof checked === 'number') {
      this.#builder.addRow(key, checked, line);
      return;
    }
    this.refuse(key, placeOf(checked.cell), this.cells[checked.cell] ?? '', checked.message);
  }

  #badKey(key: string): string | undefined {
    if (key === '') return `the customer is missing; write a value for "${this.by}"`;
    if (key.length <= MAX_KEY_UNITS) return undefined;
    return `the customer has more than ${MAX_KEY_UNITS} characters; shorten it`;
  }

  refuse(key: string | undefined, at: Position, path: string, message: string): void {
    const row = key === undefined || this.#previous === undefined ? -1 : findRow(this.#previous, key);
    const kept = row < 0 ? undefined : this.#keep(this.#previous as PlanTable, row);
    if (key !== undefined) this.#refusedKeys.add(key);
    if (kept !== undefined && key !== undefined && findRow(this.#builder, key) < 0)
      this.#builder.addRow(key, kept, at.line);
    const fate =
      kept === undefined ? 'the customer has the default limits' : 'the row keeps its previous values';
    this.#report(at, path, this.#options.badRowsAreErrors ? message : `${message}; until then, ${fate}`);
  }

  #report(at: Position, path: string, message: string): void {
    this.#refused++;
    if (this.#options.badRowsAreErrors) this.#problems.error(at, path, message);
    else this.#problems.warn(at, path, message);
  }

  /** Returns the index of the values that are in effect for a row; undefined if the policy no longer accepts them. */
  #keep(previous: PlanTable, row: number): number | undefined {
    const { names, kinds } = this.#plans.columns;
    const before = valuesOfRow(previous, row);
    // The values already include those of the plan, which may have been removed or changed since then.
    const plan = this.#planNames.indexOf(previous.plans[before[PLAN] as number]?.name ?? '');
    const numbers = names.map((name, i) => {
      const at = previous.columns.indexOf(name);
      // The same number would mean something else in a column of another type.
      return previous.kinds[at] === kinds[i] ? (before[FIRST_COLUMN + at] as number) : Number.NaN;
    });
    const checked = this.#check([
      plan < 0 ? Number.NaN : plan,
      ...before.slice(PLAN + 1, FIRST_COLUMN),
      ...numbers,
    ]);
    return typeof checked === 'number' ? checked : undefined;
  }

  /**
   * Returns the index of the values of a row, combined with those of its plan, or else of the default plan. If the row
   * has a problem, returns the problem.
   */
  #checkRow(cells: Cells): number | RowProblem {
    let name = '';
    // The name contains the length of each cell, because a cell may contain any text.
    for (const cell of cells) name += cell === undefined ? ' ' : `${cell.length}:${cell}`;
    const known = this.#checked.get(name);
    if (known !== undefined) return known;
    const checked = this.#checkNewRow(cells);
    if (this.#checked.size >= MAX_CHECKED) this.#checked.clear();
    this.#checked.set(name, checked);
    return checked;
  }

  #checkNewRow(cells: Cells): number | RowProblem {
    const { columns, defined, standard } = this.#plans;
    const name = cells[PLAN] ?? standard;
    const plan = name === undefined ? this.#noValues : this.#planValues.get(name);
    if (plan === undefined) return { cell: PLAN, message: unknownPlan(name as string, this.#planNames) };
    // An invalid plan makes the policy invalid, and has already been reported.
    if (defined.get(name ?? '')?.isInvalid) return 0;
    const values = [...plan];
    return this.#check(values, columns.read(cells, values));
  }

  /**
   * Checks the values of a row or a plan. Returns their index, or the problem. `unreadable` is the problem of a cell
   * that could not be read, so that its value is missing.
   */
  #check(values: RowValues, unreadable?: RowProblem): number | RowProblem {
    const [isUnlimited, isBlocked] = [isSet(values, UNLIMITED), isSet(values, BLOCKED)];
    let problem = unreadable;
    if (isUnlimited && isBlocked) {
      const message = 'a row cannot be both "unlimited" and "blocked"; remove one of them';
      problem ??= { cell: BLOCKED, message };
    }
    for (const check of this.#plans.checks) problem ??= check(values);
    let kept = values;
    if (problem !== undefined) {
      const isNumber = problem.cell < 0 || problem.cell >= FIRST_COLUMN;
      if (!isNumber || (!isUnlimited && !isBlocked)) return problem;
      // Such a row needs no numbers. For a blocked customer, only settlements and operators use them.
      kept = values.map((value, cell) => (cell < FIRST_COLUMN ? value : Number.NaN));
    }
    this.#hasBlocked ||= isBlocked;
    this.#hasActive ||= values[PHASE] === ACTIVE;
    return this.#builder.indexOf(kept);
  }

  /**
   * Adds all previous rows, and returns the table. Returns undefined if the policy no longer accepts any of the rows.
   */
  finishPrevious(previous: PlanTable): PlanTable | undefined {
    if (previous !== this.#previous) return undefined;
    const kept = new Map<number, number | undefined>();
    for (const row of rowsOf(previous)) {
      const index = valuesIndexOf(previous, row);
      if (!kept.has(index)) kept.set(index, this.#keep(previous, row));
      const values = kept.get(index);
      if (values === undefined) this.#refused++;
      else this.#builder.addRow(keyOfRow(previous, row), values, lineOfRow(previous, row));
    }
    if (this.#builder.rows === 0) return undefined;
    return { ...this.finish(previous.digest), readAtMillis: previous.readAtMillis };
  }

  /** `digest` is the digest of the file; '' if there is no file. */
  finish(digest: string): PlanTable {
    return this.#builder.finish({
      by: this.by,
      file: this.#plans.from,
      columns: this.#plans.columns.names,
      kinds: this.#plans.columns.kinds,
      plans: Array.from(this.#plans.defined, ([name, { texts }]) => ({ name, values: texts })),
      standard: this.#plans.standard,
      maxDrop: this.#plans.maxDrop,
      maxDropFrom: this.#plans.maxDropFrom,
      readColumns: this.readColumns,
      hasBlocked: this.#hasBlocked,
      hasActive: this.#hasActive,
      refused: this.#refused,
      lost: this.#lost,
      digest,
      readAtMillis: Date.now(),
    });
  }
}

function unknownPlan(name: string, plans: readonly string[]): string {
  const near = nearest(name, plans);
  if (near !== undefined) return `"${safePrefix(name)}" is not a plan of "define"; did you mean "${near}"?`;
  // If the text resembles no plan, the columns may be swapped, and the text may be a customer, which messages do not
  // contain.
  return `the row does not name a plan of "define"; the plans are ${plans.slice(0, 10).join(', ') || 'none'}`;
}
