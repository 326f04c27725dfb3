import type { PolicyNode } from '../../policy/policy-node.js';
import { type CidrBlock, parseBlock } from '../../policy/values/cidr.js';

/** Which values of an entry a node takes. */
export interface ValueShape {
  readonly kind: 'exact' | 'cidr' | 'pattern' | 'regex' | 'any';
  /** The value, blocks of addresses, the pattern, or regular expressions. */
  readonly items: readonly string[];
  /** What a pattern begins and ends with, before its first and after its last `*`. */
  readonly start?: string;
  readonly end?: string;
}

/** Asked for often, while levels of thousands of nodes are compared. */
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

/** What a node matches by; see {@link ValueShape}. */
export function shapeOf(node: PolicyNode): ValueShape {
  return lookUp(node).shape;
}

/** Tells the nodes of a level apart, and is the same for the same node of the other policy. */
export class Identities {
  /** Of nodes of the policy after whose lists only begin otherwise: that of the node before. */
  private readonly aligned = new Map<PolicyNode, string>();

  /** Of lists the first item counts: so they may grow. */
  of(node: PolicyNode): string {
    return this.aligned.get(node) ?? lookUp(node).identity;
  }

  /** Of lists all items count, whatever their order. */
  wholeOf(node: PolicyNode): string {
    const { kind, items } = shapeOf(node);
    return items.length < 2 ? lookUp(node).identity : JSON.stringify([kind, ...[...items].sort()]);
  }

  /** Makes one node of two on the same level of both policies that have the same list in another order. */
  align(before: readonly PolicyNode[], after: readonly PolicyNode[]): void {
    const isList = (node: PolicyNode): boolean => shapeOf(node).items.length > 1;
    const standing = new Map(before.filter(isList).map((node) => [this.wholeOf(node), node]));
    for (const node of after.filter(isList)) {
      const old = standing.get(this.wholeOf(node));
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

/** The nodes in the order in which they are tried; blocks, whose longest counts, in file order. */
export function inOrder(nodes: readonly PolicyNode[]): readonly PolicyNode[] {
  const rank = (node: PolicyNode): number => ORDER.indexOf(shapeOf(node).kind);
  return [...nodes].sort((a, b) => rank(a) - rank(b));
}

/** Whether some value may fit both: false only if none does. */
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

/** Whether every value of `inner` fits `outer`, as far as that is plain to see. */
export function takesAllOf(outer: ValueShape, inner: ValueShape): boolean {
  if (outer.kind === 'any') return true;
  if (outer.kind === 'pattern') return outer.items[0] === '*';
  if (outer.kind !== 'cidr' || inner.kind !== 'cidr') return false;
  return inner.items.every((item) => outer.items.some((block) => holds(block, item)));
}

/** Blocks that were asked for, read: most are asked for often. */
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

/** Whether a block of addresses, `10.0.0.0/8`, holds another. */
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
