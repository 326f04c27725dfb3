import { assertFound, unboundedWork } from '../../policy/match-work.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { type Taker, takerOf } from './node-changes.js';
import {
  holds,
  type Identities,
  inOrder,
  mayOverlap,
  shapeOf,
  takesAllOf,
  type ValueShape,
} from './value-shape.js';

/**
 * Descriptors that share a prefix, with the nodes that match them in both trees, and the path to report. A side has
 * several nodes if one node of the other tree matches values of all of them. `ownBefore`, `ownAfter`: the node that
 * gives the class its path exists on that side.
 */
export interface DescriptorClass {
  readonly path: string;
  readonly before: readonly Taker[];
  readonly after: readonly Taker[];
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
    readonly above: Taker;
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
  constructor(key: string, sides: readonly Taker[], pathOf: PathOf, identify: (node: PolicyNode) => string) {
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
  takers(shape: ValueShape, identity: string, other: SideLevel, part = false): readonly Taker[] {
    const takers = new Map<PolicyNode | undefined, Taker>();
    const add = (node: PolicyNode | undefined, { path, onUnmatched }: Taker): void => {
      const taker =
        node === undefined ? { node, path: '', onUnmatched } : takerOf(node, this.pathOf(path, node));
      takers.set(node, taker);
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
        if (!other.keeps(node, taken, shape, identity)) add(node, above);
        isCovered = takesAllOf(taken, shape);
        if (isCovered) break;
      }
      if (!isCovered) add(undefined, above);
    }
    return [...takers.values()];
  }

  /** Tells whether a node exists on this side, too, and is tried here before the node with `identity`. */
  private keeps(node: PolicyNode, taken: ValueShape, shape: ValueShape, identity: string): boolean {
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
  const isStanding = above.ownBefore && above.ownAfter;
  const identify = (node: PolicyNode): string =>
    isStanding ? identities.of(node) : identities.wholeOf(node);
  const before = new SideLevel(key, above.before, pathOf, identify);
  const after = new SideLevel(key, above.after, pathOf, identify);
  const seen = new Set<string>();
  for (const node of [...after.nodes, ...before.nodes]) {
    const identity = identify(node);
    if (seen.has(identity)) continue;
    seen.add(identity);
    const shape = shapeOf(node);
    const [takersBefore, takersAfter] = [
      before.takers(shape, identity, after),
      after.takers(shape, identity, before),
    ];
    const [was, is] = [isShared(takersBefore), isShared(takersAfter)];
    const isOnly = ({ node: taker }: Taker): boolean =>
      taker !== undefined && identities.of(taker) === identities.of(node);
    const same = takersBefore.every(isOnly) && takersAfter.every(isOnly);
    yield {
      path: pathOf(above.path, node),
      before: takersBefore,
      after: takersAfter,
      ownBefore: above.ownBefore && before.get(identity) !== undefined,
      ownAfter: above.ownAfter && after.get(identity) !== undefined,
      // If a node shares its bucket on both sides, the class shares neither more nor less.
      sharedMore: above.sharedMore || (is && !(was && same)),
      sharedLess: above.sharedLess || (was && !(is && same)),
    };
  }
}

function isShared(takers: readonly Taker[]): boolean {
  return takers.some(({ node }) => node?.shareThreshold === true);
}
