import type { Entry } from '../../limiter/entry.js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import { spanInWords } from '../../runtime/texts.js';
import {
  BLOCKED,
  findRow,
  isSet,
  lineOfRow,
  PLAN,
  PLAN_FLAGS,
  type PlanTable,
  UNLIMITED,
  valuesOfRow,
} from './plan-table.js';
import { customerOf } from './planned-nodes.js';

/** The row of `plans` that applies to a descriptor. */
export interface CustomerPlan {
  /** Line of the row in the file; undefined if the customer has no row. */
  readonly line: number | undefined;
  /** Name of the file; '' if the rows are the plans of the policy. */
  readonly file: string;
  /** Name of the plan in `define`; undefined if the customer has no plan. */
  readonly plan: string | undefined;
  /** Settings of the row that apply to all limits, such as `blocked`. */
  readonly flags: readonly string[];
  readonly readAtMillis: number;
  /** Whether this process has not read the rows, because a command does not read Redis, or they cannot be read. */
  readonly isUnread: boolean;
}

/** Returns the row for the entries of a descriptor whose limit reads a value from a plan. */
export function planOfCustomer(
  table: PlanTable | undefined,
  entries: readonly Entry[],
): CustomerPlan | undefined {
  if (table === undefined) return undefined;
  const row = findRow(table, customerOf(table.by, entries));
  const values = valuesOfRow(table, row);
  return {
    line: row < 0 ? undefined : lineOfRow(table, row),
    file: withoutAddressSecrets(table.file),
    plan: table.plans[values[PLAN] as number]?.name,
    flags: ([UNLIMITED, BLOCKED] as const)
      .filter((flag) => isSet(values, flag))
      .map((flag) => PLAN_FLAGS[flag]),
    readAtMillis: table.readAtMillis,
    isUnread: table.file !== '' && table.digest === '',
  };
}

/** Formats the row: `gold (line 4711 of customers.csv, read 14 seconds ago)`. */
export function describeCustomerPlan(explained: CustomerPlan, wallMicros: number): string {
  const { line, file, plan, flags, readAtMillis, isUnread } = explained;
  const age = Math.max(0, Math.round((wallMicros / 1000 - readAtMillis) / 1000));
  const name = [plan ?? 'values of the row', ...flags].join(', ');
  if (line === undefined) {
    const why = isUnread ? `the rows of ${file} were not read` : 'the customer has no row';
    return `${plan === undefined ? 'the defaults of the policy' : name} (${why})`;
  }
  return file === '' ? name : `${name} (line ${line} of ${file}, read ${spanInWords(age)} ago)`;
}
