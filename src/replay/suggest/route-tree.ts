import type { Entry } from '../../limiter/entry.js';
import { patternSize } from '../../policy/values/regex-matcher.js';
import { Coverage } from './coverage.js';
import { isSecret } from './secret-text.js';

/** A node of the suggested policy. Descriptors that end at it are a route group. */
export class RouteNode {
  readonly key: string;
  /** Undefined for a node that matches any value. */
  readonly value: string | undefined;
  /** Series of the callers of descriptors that end here, by value of the entry that names callers. */
  readonly callers = new Map<string, number>();
  readonly coverage = new Coverage();
  readonly #values = new Map<string, Map<string, RouteNode>>();
  /** Nodes that match any value, by key. */
  readonly #any = new Map<string, RouteNode>();

  constructor(key: string, value: string | undefined) {
    this.key = key;
    this.value = value;
  }

  /** The nodes of the next level, in the order in which they were added. */
  get children(): readonly RouteNode[] {
    return [...[...this.#values.values()].flatMap((nodes) => [...nodes.values()]), ...this.#any.values()];
  }

  child(key: string, value: string | undefined): RouteNode | undefined {
    return value === undefined ? this.#any.get(key) : this.#values.get(key)?.get(value);
  }

  add(key: string, value: string | undefined): RouteNode {
    const node = new RouteNode(key, value);
    if (value === undefined) this.#any.set(key, node);
    else {
      const values = this.#values.get(key) ?? new Map<string, RouteNode>();
      this.#values.set(key, values.set(value, node));
    }
    return node;
  }
}

/** The node at which the descriptor of a request ends, and the caller. */
interface Found {
  node: RouteNode;
  caller: string;
}

/** Sorts descriptors into route groups: all entries but the one that names the caller. */
export class RouteTree {
  readonly root = new RouteNode('', undefined);
  readonly #by: string;
  readonly #maxNodes: number;
  #nodes = 0;
  /** Reused. */
  readonly #found: Found = { node: this.root, caller: '' };

  /** `by` is the key of the entry that names the caller. */
  constructor(by: string, maxNodes: number) {
    this.#by = by;
    this.#maxNodes = maxNodes;
  }

  get isFull(): boolean {
    return this.#nodes > this.#maxNodes;
  }

  /** Returns the route group and the caller; undefined if no entry names the caller. The result is reused. */
  find(entries: readonly Entry[]): Found | undefined {
    let node = this.root;
    let caller: string | undefined;
    for (const { key, value } of entries) {
      if (caller === undefined && key === this.#by) {
        caller = value;
        node = this.#childOf(node, key, undefined);
      } else node = node.child(key, value) ?? this.#childOf(node, key, shownValue(key, value));
    }
    if (caller === undefined) return undefined;
    this.#found.node = node;
    this.#found.caller = caller;
    return this.#found;
  }

  /** Returns the key with the most values in the tree, and their number. */
  mostValues(): { readonly key: string; readonly count: number } {
    const values = new Map<string, Set<string>>();
    for (const { key, value } of this.nodes()) {
      if (value !== undefined) values.set(key, (values.get(key) ?? new Set()).add(value));
    }
    let most = { key: '', count: 0 };
    for (const [key, { size }] of values) if (size > most.count) most = { key, count: size };
    return most;
  }

  *nodes(below: RouteNode = this.root): Generator<RouteNode> {
    for (const node of below.children) {
      yield node;
      yield* this.nodes(node);
    }
  }

  #childOf(node: RouteNode, key: string, value: string | undefined): RouteNode {
    const child = node.child(key, value);
    if (child !== undefined) return child;
    this.#nodes++;
    return node.add(key, value);
  }
}

/** Longest value that a policy contains. */
const MAX_VALUE_CHARACTERS = 1024;

/** Returns a regular expression that matches exactly this value. */
export function literalPattern(value: string): string {
  return value.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/** Returns the value that a policy may contain: secrets, empty and long values become a node for any value. */
function shownValue(key: string, value: string): string | undefined {
  const isLong =
    value.length > MAX_VALUE_CHARACTERS ||
    (value.includes('*') && typeof patternSize(literalPattern(value)) === 'string');
  return value === '' || isLong || isSecret(key, value) ? undefined : value;
}
