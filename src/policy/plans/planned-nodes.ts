import type { Entry } from '../../limiter/entry.js';
import { PolicyNode } from '../policy-node.js';
import { BLOCKED, findRow, isSet, type PlanTable, valuesAt, valuesIndexOf } from './plan-table.js';
import { hasFlags, rulesOfPlan } from './planned-rules.js';

/** Number of copies that are kept; a power of two. They need about 10 MB. */
const SLOTS = 8192;
/** Spreads the rows of values of different nodes over the slots. */
const SPREAD = 0x9e37;

/**
 * Creates and caches copies of the nodes of a tree, whose limits have the values of a plan. Customers with the same
 * values share a copy. After matching, the copy is used like any other node with ordinary rules. Each copy belongs in
 * one slot, and replaces another copy there if necessary.
 */
export class PlannedNodes {
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
export function customerOf(by: string, entries: readonly Entry[]): string {
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
