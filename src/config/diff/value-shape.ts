import type { PolicyNode } from '../../policy/policy-node.js';
import { type CidrBlock, parseBlock } from '../../policy/values/cidr.js';

/** The set of entry values that a node matches. */
export interface ValueShape {
  readonly kind: 'exact' | 'cidr' | 'pattern' | 'regex' | 'any';
  /** The exact value, the address blocks, the pattern, or the regular expressions. */
  readonly items: readonly string[];
  /** The text of a pattern before its first `*` and after its last `*`. */
  readonly start?: string;
  readonly end?: string;
}

/** Caches shapes: a comparison of levels with thousands of nodes needs each shape often. */
const shapes = new WeakMap<PolicyNode, { readonly shape: ValueShape; readonly identity: string }>();

function lookUp(node: PolicyNode): { readonly shape: ValueShape; readonly identity: string } {
  let known = shapes.get(node);
  if (known === undefined) {
    const shape = readShape(node);
    known = { shape, identity: `${shape.kind} ${shape.items[0] ?? ''}` };
    shapes.set(node, known);
  }
  return known;
}

/** Returns the shape of the values that a node matches. */
export function shapeOf(node: PolicyNode): ValueShape {
  return lookUp(node).shape;
}

/** Identities of nodes: unique within a level, and equal for the same node in both policies. */
export class Identities {
  /** Identity of the old node, for new nodes that have the same list in another order. */
  private readonly aligned = new Map<PolicyNode, string>();

  /** Returns an identity that uses only the first item of a list, so that the list can grow. */
  of(node: PolicyNode): string {
    return this.aligned.get(node) ?? lookUp(node).identity;
  }

  /** Returns an identity that uses all items of a list, in any order. */
  fullIdentityOf(node: PolicyNode): string {
    const { kind, items } = shapeOf(node);
    return items.length < 2 ? lookUp(node).identity : JSON.stringify([kind, ...[...items].sort()]);
  }

  /** Gives nodes of one level that have the same list in another order in both policies the same identity. */
  align(before: readonly PolicyNode[], after: readonly PolicyNode[]): void {
    const isList = (node: PolicyNode): boolean => shapeOf(node).items.length > 1;
    const previous = new Map(before.filter(isList).map((node) => [this.fullIdentityOf(node), node]));
    for (const node of after.filter(isList)) {
      const old = previous.get(this.fullIdentityOf(node));
      if (old !== undefined) this.aligned.set(node, lookUp(old).identity);
    }
  }
}

function readShape(node: PolicyNode): ValueShape {
  const { matcher } = node;
  if (matcher !== undefined) return matcher;
  const { value } = node;
  if (value === '') return { kind: 'any', items: [] };
  if (node.wildcard === undefined) return { kind: 'exact', items: [value] };
  const [start, end] = [value.slice(0, value.indexOf('*')), value.slice(value.lastIndexOf('*') + 1)];
  return { kind: 'pattern', items: [value], start, end };
}

const ORDER: readonly ValueShape['kind'][] = ['exact', 'cidr', 'pattern', 'regex', 'any'];

/**
 * Sorts nodes by the order in which they are tried. Address blocks stay in file order, because the longest prefix wins.
 */
export function inOrder(nodes: readonly PolicyNode[]): readonly PolicyNode[] {
  const rank = (node: PolicyNode): number => ORDER.indexOf(shapeOf(node).kind);
  return [...nodes].sort((a, b) => rank(a) - rank(b));
}

/** Tells whether some value may match both shapes. False only if no value does. */
export function mayOverlap(a: ValueShape, b: ValueShape): boolean {
  if (a.kind === 'any' || b.kind === 'any') return true;
  if (a.kind === 'cidr' && b.kind === 'cidr') {
    return a.items.some((one) => b.items.some((other) => holds(one, other) || holds(other, one)));
  }
  if (a.kind === 'pattern' && b.kind === 'pattern') return patternsOverlap(a, b);
  if (a.kind === 'cidr' && b.kind === 'pattern') return isAddressPattern(b.items[0] ?? '');
  if (a.kind === 'pattern' && b.kind === 'cidr') return isAddressPattern(a.items[0] ?? '');
  return true;
}

/** Tells whether `outer` matches every value of `inner`. False if that cannot be seen from the shapes alone. */
export function containsShape(outer: ValueShape, inner: ValueShape): boolean {
  if (outer.kind === 'any') return true;
  if (outer.kind === 'pattern') return outer.items[0] === '*';
  if (outer.kind !== 'cidr' || inner.kind !== 'cidr') return false;
  return inner.items.every((item) => outer.items.some((block) => holds(block, item)));
}

/** Parsed address blocks, because a comparison needs most of them many times. */
const blocks = new Map<string, CidrBlock | undefined>();
const MAX_BLOCKS = 100_000;

function blockAt(text: string): CidrBlock | undefined {
  if (blocks.has(text)) return blocks.get(text);
  const block = parseBlock(text);
  if (blocks.size >= MAX_BLOCKS) blocks.clear();
  const read = typeof block === 'string' ? undefined : block;
  blocks.set(text, read);
  return read;
}

/** Tells whether an address block, such as `10.0.0.0/8`, contains another block. */
export function holds(outer: string, inner: string): boolean {
  const [large, small] = [blockAt(outer), blockAt(inner)];
  if (large === undefined || small === undefined) return false;
  if (large.family !== small.family || large.prefix > small.prefix) return false;
  const hostBits = BigInt((large.family === 4 ? 32 : 128) - large.prefix);
  return large.first >> hostBits === small.first >> hostBits;
}

function isAddressPattern(pattern: string): boolean {
  return /^[0-9A-Fa-f:.*]*$/.test(pattern);
}

function patternsOverlap(a: ValueShape, b: ValueShape): boolean {
  const [startA = '', startB = '', endA = '', endB = ''] = [a.start, b.start, a.end, b.end];
  return (
    (startA.startsWith(startB) || startB.startsWith(startA)) && (endA.endsWith(endB) || endB.endsWith(endA))
  );
}
