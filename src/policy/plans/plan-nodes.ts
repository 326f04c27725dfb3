import type { Entry } from '../../limiter/entry.js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import { spanInWords } from '../../runtime/texts.js';
import { PolicyNode } from '../policy-node.js';
import { hasFlags, rulesOfPlan } from './plan-rules.js';
import {
  BLOCKED,
  findRow,
  isSet,
  lineOfRow,
  PLAN,
  PLAN_FLAGS,
  type PlanTable,
  UNLIMITED,
  valuesAt,
  valuesIndexOf,
  valuesOfRow,
} from './plan-table.js';

/** Number of copies that are kept; a power of two. They need about 10 MB. */
const SLOTS = 8192;
/** Spreads the rows of values of different nodes over the slots. */
const SPREAD = 0x9e37;

/**
 * Creates and caches copies of the nodes of a tree, whose limits have the values of a plan. Customers with the same
 * values share a copy. After matching, the copy is used like any other node with ordinary rules. Each copy belongs in
 * one slot, and replaces another copy there if necessary.
 */
export class PlanNodes {
  private readonly table: PlanTable;
  /** The original of the copy in each slot, and the index of its row of values. */
  private readonly originals = new Array<PolicyNode | undefined>(SLOTS).fill(undefined);
  private readonly indexes = new Int32Array(SLOTS);
  private readonly copies = new Array<PolicyNode | undefined>(SLOTS).fill(undefined);

  constructor(table: PlanTable) {
    this.table = table;
  }

  /**
   * Returns the node for the customer in `entries`, which is `node` itself if the customer has the default limits. If
   * the row blocks the customer, this also applies to limits without values from the plan.
   */
  of(node: PolicyNode, entries: readonly Entry[]): PolicyNode {
    const { table } = this;
    if (!node.usesPlan && !(table.hasBlocked && node.hasCustomer)) return node;
    const index = valuesIndexOf(table, findRow(table, customerOf(table.by, entries)));
    const slot = (index + Math.imul(node.id, SPREAD)) & (SLOTS - 1);
    if (this.originals[slot] === node && this.indexes[slot] === index) return this.copies[slot] as PolicyNode;
    const values = valuesAt(table, index);
    const differs = node.usesPlan ? index !== 0 || hasFlags(values) : isSet(values, BLOCKED);
    const copy = differs ? copyOf(node, values) : node;
    this.originals[slot] = node;
    this.indexes[slot] = index;
    this.copies[slot] = copy;
    return copy;
  }
}

/**
 * Returns the value of the entry that selects the row. When weir reads the policy, it checks that each limit has such
 * an entry.
 */
function customerOf(by: string, entries: readonly Entry[]): string {
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as Entry;
    if (entry.key === by) return entry.value;
  }
  return '';
}

function copyOf(node: PolicyNode, values: Float64Array): PolicyNode {
  const { fields, parent, isSecret } = node;
  return new PolicyNode({ fields, parent, isSecret, rules: rulesOfPlan(node.rules, values) });
}

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
