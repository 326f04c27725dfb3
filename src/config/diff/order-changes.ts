import type { PolicyNode } from '../../policy/policy-node.js';
import { matcherField } from '../../policy/values/value-matcher.js';
import { effectOf, type LocalChange } from './change.js';
import { type PathOf, SideLevel } from './level-classes.js';
import { type Move, matchesText, moveEffect, type NodeMatch, nodeMatchOf } from './node-changes.js';
import type { DiffContext } from './rule-changes.js';
import { inOrder, mayOverlap, shapeOf, type ValueShape } from './value-shape.js';

/** A change at a path of the tree, as in {@link Rule.path}. */
export interface PlacedChange extends LocalChange {
  readonly path: string;
}

/** Values that move to another node although both nodes exist in both trees. */
export interface MovedValues {
  readonly change: PlacedChange;
  /** The caller still has to compare the children of the nodes. */
  readonly move: Move;
}

/** Yields the values that move between nodes with `key` below a node that exists in both trees. */
export function* matchChanges(
  key: string,
  before: NodeMatch,
  after: NodeMatch,
  pathOf: PathOf,
  context: DiffContext,
): Generator<MovedValues> {
  const { identities } = context;
  const identityOf = (node: PolicyNode): string => identities.of(node);
  const [old, now] = [levelOf(before, key), levelOf(after, key)];
  identities.align(old, now);
  yield* orderChanges(old, now, after.path, pathOf, context);
  const [oldLevel, nowLevel] = [before, after].map(
    (side) => new SideLevel(key, [side], pathOf, identityOf),
  ) as [SideLevel, SideLevel];
  for (const node of now) {
    const previous = oldLevel.get(identityOf(node));
    const { matcher } = node;
    if (previous === undefined || matcher === undefined) continue;
    if (shapeOf(node).items.length + shapeOf(previous).items.length <= 2) continue;
    const path = pathOf(after.path, node);
    const setting = matcherField(matcher);
    const added = without(shapeOf(node), shapeOf(previous));
    const removed = without(shapeOf(previous), shapeOf(node));
    if (added.items.length > 0) {
      const matches = oldLevel.matches(added, identityOf(node), nowLevel, true);
      const move = moveOf(matches, [nodeMatchOf(node, path)]);
      yield placed(
        path,
        setting,
        move,
        `now also matches ${listed(added)}; these values previously had`,
        matches,
        context,
      );
    }
    if (removed.items.length > 0) {
      const matches = nowLevel.matches(removed, identityOf(node), oldLevel, true);
      const move = moveOf([nodeMatchOf(previous, path)], matches);
      yield placed(
        path,
        setting,
        move,
        `no longer matches ${listed(removed)}; these values now have`,
        matches,
        context,
      );
    }
  }
}

/** Yields the patterns or regular expressions that are now tried before others: values that match both move to them. */
function* orderChanges(
  old: readonly PolicyNode[],
  now: readonly PolicyNode[],
  parent: string,
  pathOf: PathOf,
  context: DiffContext,
): Generator<MovedValues> {
  const { identities } = context;
  const ranks = new Map(ordered(old).map((node, i) => [identities.of(node), { node, i }]));
  const common = ordered(now).flatMap((node) => {
    const previous = ranks.get(identities.of(node));
    return previous === undefined ? [] : [{ node, shape: shapeOf(node), previous }];
  });
  // Lowest old position of all later nodes. If it is greater than the node's own, the node overtook none of them.
  const least: number[] = new Array(common.length + 1).fill(Number.POSITIVE_INFINITY);
  for (let i = common.length - 1; i >= 0; i--)
    least[i] = Math.min(least[i + 1] as number, common[i]?.previous.i ?? 0);
  for (const [place, { node, shape, previous }] of common.entries()) {
    if ((least[place + 1] as number) > previous.i) continue;
    for (let i = place + 1; i < common.length; i++) {
      const { shape: taken, previous: other } = common[i] as (typeof common)[number];
      if (other.i > previous.i || shape.kind !== taken.kind || !mayOverlap(shape, taken)) continue;
      const path = pathOf(parent, node);
      const matches = [nodeMatchOf(other.node, pathOf(parent, other.node))];
      const move = moveOf(matches, [nodeMatchOf(node, path)]);
      const { tightens, loosens } = moveEffect(move, context);
      const [was, is] = [matchesText(matches, context.nowMicros), matchesText(move.after, context.nowMicros)];
      const text = `now precedes ${matches[0]?.path}; values that match both previously had ${was}, and now have ${is}`;
      yield { change: { path, setting: 'order', effect: effectOf(tightens, loosens), tightens, text }, move };
    }
  }
}

function levelOf({ node }: NodeMatch, key: string): readonly PolicyNode[] {
  return node?.levels.get(key)?.nodes ?? [];
}

/** Returns the nodes whose order in the file has an effect. */
function ordered(nodes: readonly PolicyNode[]): readonly PolicyNode[] {
  return inOrder(nodes.filter((node) => ['pattern', 'regex'].includes(shapeOf(node).kind)));
}

function without({ kind, items }: ValueShape, others: ValueShape): ValueShape {
  const known = new Set(others.items);
  return { kind, items: items.filter((item) => !known.has(item)) };
}

const ITEMS_SHOWN = 3;
const MAX_SHOWN = 60;

function listed({ items }: ValueShape): string {
  const shown = items
    .slice(0, ITEMS_SHOWN)
    .map((item) => item.slice(0, MAX_SHOWN))
    .join(', ');
  return items.length > ITEMS_SHOWN ? `${shown} and ${items.length - ITEMS_SHOWN} more` : shown;
}

function moveOf(before: readonly NodeMatch[], after: readonly NodeMatch[]): Move {
  const shares = (matches: readonly NodeMatch[]): boolean =>
    matches.some(({ node }) => node?.shareThreshold === true);
  return { before, after, sharedMore: shares(after), sharedLess: shares(before) };
}

function placed(
  path: string,
  setting: string,
  move: Move,
  text: string,
  matches: readonly NodeMatch[],
  context: DiffContext,
): MovedValues {
  const { tightens, loosens } = moveEffect(move, context);
  const sentence = `${text} ${matchesText(matches, context.nowMicros)}`;
  return { change: { path, setting, effect: effectOf(tightens, loosens), tightens, text: sentence }, move };
}
