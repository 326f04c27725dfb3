import { dirname, isAbsolute, join, normalize } from 'node:path';
import { MAX_KEY_UNITS } from '../../../policy/plans/plan-table.js';
import { isSecretKey } from '../../../policy/redact.js';
import { nearest } from '../../../runtime/nearest-name.js';
import { REMOVED_PLAN_ADDRESS } from '../../../runtime/removed-names.js';
import { safePrefix } from '../../../runtime/shown-address.js';
import { listSome, plural } from '../../../runtime/texts.js';
import { isNullText } from '../../yaml/yaml-value.js';
import type { FieldReader, Located } from '../field-reader.js';
import { readMapping } from '../field-values.js';
import {
  type LimitCheck,
  nearColumn,
  PlanColumns,
  type PlanNumberKind,
  readPlanNumber,
  type ValueKind,
} from './plan-columns.js';

/** Maximum number of descriptors that a message lists. */
const MAX_PLACES = 5;

/** A plan of `define`. */
class DefinedPlan {
  readonly reader: FieldReader;
  /** Whether one of the values that have been read is invalid. The problem has been reported. */
  isInvalid = false;
  readonly #numbers = new Map<string, number>();

  constructor(reader: FieldReader) {
    this.reader = reader;
  }

  /** NaN if the plan has no valid number for the value. */
  number(name: string, kind: PlanNumberKind): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const number = readPlanNumber(this.reader, name, kind);
    this.isInvalid ||= number === undefined;
    this.#numbers.set(name, number ?? Number.NaN);
    return number ?? Number.NaN;
  }

  /** Whether the plan sets `unlimited` or `blocked`. */
  has(flag: 'unlimited' | 'blocked'): boolean {
    return this.number(flag, flag) === 1;
  }

  /** Returns the numbers of all cells of a row except the cell with the plan. */
  numbers({ names, values }: PlanColumns): readonly number[] {
    const flags = (['unlimited', 'blocked', 'phase'] as const).map((flag) => this.number(flag, flag));
    return [...flags, ...names.map((name, i) => this.number(name, values[i] as ValueKind))];
  }

  /** The values as written, by name. */
  get texts(): Readonly<Record<string, string>> {
    const texts = new Map<string, string>();
    for (const name of this.reader.map.fields.keys()) {
      const value = this.reader.field(name)?.value;
      if (value?.kind === 'scalar') texts.set(name, value.text);
    }
    return Object.fromEntries(texts);
  }
}

/** The `plans` of a domain, and the values that its limits read from them. */
export class PlansReader {
  readonly by: string;
  /** Path of the file that contains the rows; undefined if the rows are the plans of `define`. */
  readonly file: string | undefined;
  /** Name of the file as written. */
  readonly from: string;
  /** Whether the address of the rows is invalid, so that weir must not connect to it. */
  readonly isRefusedAddress: boolean;
  readonly maxDrop: number;
  readonly maxDropFrom: number;
  readonly defined: ReadonlyMap<string, DefinedPlan>;
  readonly reader: FieldReader;
  /** The plan of customers without a row; undefined if there is no valid `default`. */
  readonly standard: string | undefined;
  readonly columns = new PlanColumns();
  /** The columns of the rows to read; undefined if all columns must be known. */
  readonly readColumns: readonly string[] | undefined;
  private readonly namedColumns: readonly Located<string>[];
  /** The checks of all limits that read values from plans. Each row must pass these checks. */
  readonly checks: LimitCheck[] = [];
  /** Paths of descriptors that have limits, but no entry on their path that selects a row. */
  readonly withoutCustomer: string[] = [];
  /** Whether a limit with values from plans has errors, so that it is not known which values it uses. */
  hasInvalidLimit = false;

  constructor(reader: FieldReader) {
    this.reader = reader;
    const values = readMapping(reader, 'plans');
    const { by = '', from = '', default: standard } = values;
    this.by = by;
    this.from = from;
    this.file = this.from === '' ? undefined : planPath(reader, this.from);
    const errorsBefore = reader.problems.errorCount;
    if (this.isRemote) this.checkAddress();
    this.isRefusedAddress = reader.problems.errorCount > errorsBefore;
    this.maxDrop = values.max_drop;
    this.maxDropFrom = values.max_drop_from;
    this.namedColumns = values.columns ?? [];
    this.readColumns = values.columns?.map(({ value }) => value);
    this.defined = readDefined(values.define);
    this.standard = standard !== undefined && this.defined.has(standard) ? standard : undefined;
    this.check(standard);
  }

  /** Whether the rows come from Redis instead of a file. */
  get isRemote(): boolean {
    return isPlanAddress(this.from);
  }

  /** Whether customers may be blocked, by a plan or by a row of the file. */
  get mayBlock(): boolean {
    if (this.file !== undefined) return true;
    return [...this.defined.values()].some((plan) => plan.has('blocked'));
  }

  private checkAddress(): void {
    const { reader, from } = this;
    if (REMOVED_PLAN_ADDRESS.pattern.test(from)) {
      reader.problems.refuse(reader.at('from'), reader.pathOf('from'), REMOVED_PLAN_ADDRESS.sentence);
      return;
    }
    const url = URL.canParse(from) ? new URL(from) : undefined;
    if (url === undefined || !isRedisAddress(from)) {
      reader.error('from', 'the address is not a URL that begins with redis:// or rediss://');
    } else if (url.password !== '') {
      reader.error(
        'from',
        'the address contains a password; remove it, and set PLANS_TOKEN_PATH to a file with the password',
      );
    } else if (!isHashAddress(url)) {
      reader.error(
        'from',
        'the address does not contain the name of a hash; write redis://<host>:<port>/<hash>, or add ?db=<number>',
      );
    }
  }

  private check(standard: string | undefined): void {
    const { reader, defined } = this;
    if (this.file !== undefined && standard !== undefined && defined.get(standard)?.has('unlimited')) {
      reader.warn(
        'default',
        `"${safePrefix(standard)}" is unlimited, so no customer has a limit if the rows cannot be read after ` +
          'a start; choose a plan with limits as the default, and assign this plan to customers in the rows',
      );
    }
    for (const [name, plan] of defined) {
      if (this.file === undefined || !isNullText(name)) continue;
      const message = `in rows, "${name}" without quotes means that there is no plan; rename the plan`;
      plan.reader.problems.error(plan.reader.map.at, plan.reader.path, message);
    }
    if (this.file === undefined && defined.size === 0) {
      reader.error(
        'from',
        '"plans" has no rows; set "from" to a file with the plan of each customer, or write plans below "define"',
      );
    }
    if (this.readColumns !== undefined && this.file === undefined) {
      reader.error('columns', '"columns" names columns of a table; add "from", or remove "columns"');
    }
    if (standard !== undefined && this.standard === undefined) {
      const near = nearest(standard, defined.keys());
      const remedy = near === undefined ? 'add the plan to "define"' : `did you mean "${near}"?`;
      reader.error('default', `"${safePrefix(standard)}" is not a plan of "define"; ${remedy}`);
    }
  }

  /**
   * Reports an error if the values of the entry `by` are secrets, because a table of customers must not contain API
   * keys.
   */
  refuseSecret(secretKeys: ReadonlySet<string>): void {
    if (!isSecretKey(this.by, secretKeys)) return;
    this.reader.error(
      'by',
      `the values of "${safePrefix(this.by)}" are secrets, which a table must not contain; use "derive" to derive ` +
        'another entry from it, such as tenant, and write the key of that entry',
    );
  }

  /**
   * Returns the number that describes the limit of customers without a row. This is the value of the default plan, or,
   * if that plan has no limit, the value of the first plan that has one. Returns NaN if no plan has the value, and
   * undefined if a plan is invalid.
   */
  standardOf(name: string, kind: ValueKind): number | undefined {
    const standard = this.standard === undefined ? undefined : this.defined.get(this.standard);
    if (standard === undefined) return Number.NaN;
    const isFree = standard.has('unlimited') || standard.has('blocked');
    const plans = isFree ? [standard, ...this.defined.values()] : [standard];
    const numbers = plans.map((plan) => plan.number(name, kind));
    if (plans.some(({ isInvalid }) => isInvalid)) return undefined;
    return numbers.find((number) => !Number.isNaN(number)) ?? Number.NaN;
  }

  /** Warns about limits that cannot block customers. */
  warnOfBlocked(): void {
    const { withoutCustomer: places, by } = this;
    if (places.length === 0) return;
    this.reader.warn(
      'by',
      `"blocked" has no effect at ${plural(places.length, 'descriptor')} with limits, because no descriptor from ` +
        `the top to there has the key "${safePrefix(by)}": ${listSome(places, MAX_PLACES)}; to block customers ` +
        'there as well, add the key above these limits, or send another descriptor with it in the same requests',
    );
  }

  /** Reports values in `define` that no limit uses. Call it after all limits have been read. */
  checkNames(): void {
    if (this.hasInvalidLimit) return;
    if (this.checks.length === 0) {
      this.reader.error(
        'by',
        'no limit takes a value from "plans", so its rows have no effect; write { plan: <value> } in a limit, or ' +
          'remove "plans"',
      );
    }
    for (const { value, at, path } of this.namedColumns) {
      if (value === this.by || this.columns.cells.includes(value)) continue;
      const message = `no limit uses the column "${safePrefix(value)}"; ${nearColumn(value, this.columns.cells)}`;
      this.reader.problems.error(at, path, message);
    }
    const cells = this.columns.cells.filter((cell) => cell !== 'plan');
    for (const { reader } of this.defined.values()) {
      for (const name of reader.map.fields.keys()) {
        if (cells.includes(name) || reader.field(name) === undefined) continue;
        reader.error(name, `no limit uses the value "${safePrefix(name)}"; ${nearColumn(name, cells)}`);
      }
    }
  }
}

/**
 * Returns whether the path of a Redis address is the name of a hash, and whether its query is empty or selects a
 * database.
 */
function isHashAddress({ pathname, search, hostname }: URL): boolean {
  if (hostname === '' || !/^(?:\?db=\d{1,4})?$/.test(search)) return false;
  try {
    return decodeURIComponent(pathname).length > 1;
  } catch {
    return false;
  }
}

function readDefined(define: FieldReader | undefined): ReadonlyMap<string, DefinedPlan> {
  const defined = new Map<string, DefinedPlan>();
  if (define === undefined) return defined;
  for (const name of define.map.fields.keys()) {
    const plan = define.mapping(name);
    if (plan === undefined) continue;
    if (name === '' || name.length > MAX_KEY_UNITS) {
      const message = `the name of a plan must have 1 to ${MAX_KEY_UNITS} characters; change the name`;
      plan.problems.error(plan.map.at, plan.path, message);
      continue;
    }
    defined.set(name, new DefinedPlan(plan));
  }
  return defined;
}

/**
 * Resolves `from` relative to the policy file. Returns an address unchanged. In a ConfigMap, a name without a directory
 * is another key.
 */
function planPath({ problems: { file, folder } }: FieldReader, name: string): string {
  if (isAbsolute(name) || isPlanAddress(name)) return name;
  const isKey = folder !== undefined && !normalize(name).includes('/');
  return join(isKey ? folder : dirname(file), name);
}

/** Returns the file in `plans.from`, whether or not it is readable, so that weir does not load it as a policy. */
export function planFile(root: FieldReader): readonly string[] {
  const plans = root.map.fields.get('plans')?.value;
  const from = plans?.kind === 'map' ? plans.fields.get('from')?.value : undefined;
  return from?.kind === 'scalar' && from.text !== '' ? [planPath(root, from.text)] : [];
}

/** Returns whether `plans.from` is an address instead of a file. */
export function isPlanAddress(from: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(from);
}

/** Returns whether an address is a hash in Redis. All other addresses are errors. */
export function isRedisAddress(address: string): boolean {
  return /^rediss?:/i.test(address);
}
