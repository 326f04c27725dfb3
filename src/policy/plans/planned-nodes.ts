import type { Entry } from '../../limiter/entry.js';
import { PolicyNode } from '../policy-node.js';
import { findRow, type PlanTable, valuesAt, valuesIndexOf } from './plan-table.js';
import { hasFlags, rulesOfPlan } from './planned-rules.js';

/** Maximum number of nodes with the limits of one row of values; they take about 10 MB. */
const MAX_NODES = 8192;

/**
 * Creates and keeps copies of the nodes of a tree whose limits have the values of a plan. Customers with the same
 * values share a copy, and everything after matching sees an ordinary node with ordinary rules.
 */
export class PlannedNodes {
  private readonly table: PlanTable;
  private readonly count: number;
  /** By the node's id and the row of values, oldest first. */
  private readonly nodes = new Map<number, PolicyNode>();

  constructor(table: PlanTable) {
    this.table = table;
    this.count = table.values.length;
  }

  /** Returns the node for the customer in `entries`: `node` itself if the limits are those of the default. */
  of(node: PolicyNode, entries: readonly Entry[]): PolicyNode {
    const { table } = this;
    const index = valuesIndexOf(table, findRow(table, customerOf(table.by, entries)));
    const name = node.id * this.count + index;
    const known = this.nodes.get(name);
    return known ?? this.add(name, node, index);
  }

  private add(name: number, node: PolicyNode, index: number): PolicyNode {
    const values = valuesAt(this.table, index);
    const made = index === 0 && !hasFlags(values) ? node : copyOf(node, values);
    const [oldest] = this.nodes.keys();
    if (oldest !== undefined && this.nodes.size >= MAX_NODES) this.nodes.delete(oldest);
    this.nodes.set(name, made);
    return made;
  }
}

/** Returns the value of the entry that selects the row. The reader checks that each limit has such an entry. */
export function customerOf(by: string, entries: readonly Entry[]): string {
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as Entry;
    if (entry.key === by) return entry.value;
  }
  return '';
}

function copyOf(node: PolicyNode, values: Float64Array): PolicyNode {
  const { fields, parent, isSecret } = node;
  return new PolicyNode({ fields, parent, isSecret, rules: rulesOfPlan(node.rules, values, fields.isList) });
}
