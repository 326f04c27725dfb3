import { assertFound, unboundedWork } from '../../policy/match-work.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { type NodeMatch, nodeMatchOf } from './node-changes.js';
import {
  containsShape,
  holds,
  type Identities,
  inOrder,
  mayOverlap,
  shapeOf,
  type ValueShape,
} from './value-shape.js';

/**
 * Descriptors that share a prefix, with the nodes that match them in both trees, and the path to report. A side has
 * several nodes if one node of the other tree matches values of all of them. `ownBefore`, `ownAfter`: the node that
 * gives the class its path exists on that side.
 */
export interface DescriptorClass {
  readonly path: string;
  readonly before: readonly NodeMatch[];
  readonly after: readonly NodeMatch[];
  readonly ownBefore: boolean;
  readonly ownAfter: boolean;
  /** Whether requests share a bucket in `after` but not in `before`, and the reverse. */
  readonly sharedMore: boolean;
  readonly sharedLess: boolean;
}

/** Returns the path of a node, given the path of its parent. */
export type PathOf = (parent: string, node: PolicyNode) => string;

/** The nodes with one key below the nodes of one side of a class. */
export class SideLevel {
  /** In file order. */
  readonly nodes: readonly PolicyNode[];
  private readonly places: readonly {
    readonly above: NodeMatch;
    /** All nodes but those with exact values, in the order in which they are tried. */
    readonly tried: readonly PolicyNode[];
    readonly byIdentity: ReadonlyMap<string, PolicyNode>;
  }[];
  private readonly byIdentity: ReadonlyMap<string, PolicyNode>;
  private readonly ranks: ReadonlyMap<string, number>;
  private readonly key: string;
  private readonly pathOf: PathOf;
  private readonly identify: (node: PolicyNode) => string;

  /** `identify` returns a node's identity, see {@link Identities}. */
  constructor(
    key: string,
    sides: readonly NodeMatch[],
    pathOf: PathOf,
    identify: (node: PolicyNode) => string,
  ) {
    this.identify = identify;
    this.key = key;
    this.pathOf = pathOf;
    this.places = sides.map((above) => {
      const nodes = above.node?.levels.get(key)?.nodes ?? [];
      const tried = inOrder(nodes.filter((one) => shapeOf(one).kind !== 'exact'));
      return {
        above,
        tried,
        byIdentity: new Map(tried.map((one) => [this.identify(one), one])),
      };
    });
    this.nodes = sides.flatMap(({ node }) => node?.levels.get(key)?.nodes ?? []);
    this.byIdentity = new Map(this.nodes.map((node) => [this.identify(node), node]));
    this.ranks = new Map(
      this.places.flatMap(({ tried }) => tried.map((node, i) => [this.identify(node), i] as const)),
    );
  }

  get(identity: string): PolicyNode | undefined {
    return this.byIdentity.get(identity);
  }

  rank(identity: string): number {
    return this.ranks.get(identity) ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Returns the nodes that match values of `shape`, where `identity` identifies the node on the other side that has
   * this shape. Leaves out nodes that exist on both sides and are tried first on both. `part`: the shape is only a part
   * of the node's values, so the node itself may exist on this side, too.
   */
  matches(shape: ValueShape, identity: string, other: SideLevel, part = false): readonly NodeMatch[] {
    const matches = new Map<PolicyNode | undefined, NodeMatch>();
    const add = (node: PolicyNode | undefined, { path, onUnmatched }: NodeMatch): void => {
      const match =
        node === undefined ? { node, path: '', onUnmatched } : nodeMatchOf(node, this.pathOf(path, node));
      matches.set(node, match);
    };
    for (const { above, tried, byIdentity } of this.places) {
      if (shape.kind === 'exact') {
        const found = above.node?.find(this.key, shape.items[0] ?? '', unboundedWork());
        add(found === undefined ? undefined : assertFound(found), above);
        continue;
      }
      const same = part ? undefined : byIdentity.get(identity);
      if (same !== undefined) {
        add(same, above);
        continue;
      }
      let isCovered = false;
      for (const node of tried) {
        const taken = shapeOf(node);
        if (!mayOverlap(taken, shape)) continue;
        if (!other.isTriedFirst(node, taken, shape, identity)) add(node, above);
        isCovered = containsShape(taken, shape);
        if (isCovered) break;
      }
      if (!isCovered) add(undefined, above);
    }
    return [...matches.values()];
  }

  /** Tells whether a node exists on this side, too, and is tried here before the node with `identity`. */
  private isTriedFirst(node: PolicyNode, taken: ValueShape, shape: ValueShape, identity: string): boolean {
    const here = this.get(this.identify(node));
    if (here === undefined) return false;
    if (taken.kind !== 'cidr' || shape.kind !== 'cidr')
      return this.rank(this.identify(node)) < this.rank(identity);
    return taken.items.every((block) => !shape.items.some((item) => holds(block, item)));
  }
}

/** Yields the subclasses of a class by an entry with `key`: one for each node on either side. */
export function* classesBelow(
  above: DescriptorClass,
  key: string,
  pathOf: PathOf,
  identities: Identities,
): Generator<DescriptorClass> {
  // If a node exists in both trees, values added to and removed from its list are reported as changes of that node.
  const isInBothTrees = above.ownBefore && above.ownAfter;
  const identify = (node: PolicyNode): string =>
    isInBothTrees ? identities.of(node) : identities.fullIdentityOf(node);
  const before = new SideLevel(key, above.before, pathOf, identify);
  const after = new SideLevel(key, above.after, pathOf, identify);
  const seen = new Set<string>();
  for (const node of [...after.nodes, ...before.nodes]) {
    const identity = identify(node);
    if (seen.has(identity)) continue;
    seen.add(identity);
    const shape = shapeOf(node);
    const [matchesBefore, matchesAfter] = [
      before.matches(shape, identity, after),
      after.matches(shape, identity, before),
    ];
    const [was, is] = [isShared(matchesBefore), isShared(matchesAfter)];
    const isOnly = ({ node: match }: NodeMatch): boolean =>
      match !== undefined && identities.of(match) === identities.of(node);
    const same = matchesBefore.every(isOnly) && matchesAfter.every(isOnly);
    yield {
      path: pathOf(above.path, node),
      before: matchesBefore,
      after: matchesAfter,
      ownBefore: above.ownBefore && before.get(identity) !== undefined,
      ownAfter: above.ownAfter && after.get(identity) !== undefined,
      // If a node shares its bucket on both sides, the class shares neither more nor less.
      sharedMore: above.sharedMore || (is && !(was && same)),
      sharedLess: above.sharedLess || (was && !(is && same)),
    };
  }
}

function isShared(matches: readonly NodeMatch[]): boolean {
  return matches.some(({ node }) => node?.shareThreshold === true);
}
