import type { PolicyNode } from '../../policy/policy-node.js';
import { isCredential, redacted } from '../../policy/redact.js';
import { isEnforced } from './enforcement.js';
import { classesBelow, type DescriptorClass, type PathOf } from './level-classes.js';
import { movedChanges, type NodeMatch, nodeChanges, nodeMatchOf, shareChange } from './node-changes.js';
import { matchChanges, type PlacedChange } from './order-changes.js';
import type { DiffContext } from './rule-changes.js';
import { shapeOf } from './value-shape.js';

/**
 * Compares two trees by walking both at once. For each class of descriptors, it compares the nodes that match before
 * and after. Changes are in the order of the new tree, with removed nodes at the end of their level.
 */
export function treeChanges(
  before: PolicyNode,
  after: PolicyNode,
  secretKeys: ReadonlySet<string>,
  context: DiffContext,
): readonly PlacedChange[] {
  const changes: PlacedChange[] = [];
  const pathOf: PathOf = (parent, node) => {
    const label = labelOf(node, secretKeys);
    return parent === '' ? label : `${parent}/${label}`;
  };
  const visit = (found: DescriptorClass): void => {
    changes.push(...classChanges(found, context));
    below(found);
  };
  const below = (above: DescriptorClass): void => {
    const keys = new Set(
      [...above.after, ...above.before].flatMap(({ node }) => [...(node?.levels.keys() ?? [])]),
    );
    for (const key of keys) {
      const previous = commonNodes(above);
      if (previous !== undefined) {
        for (const { change, move } of matchChanges(key, ...previous, pathOf, context)) {
          changes.push(change);
          below({ path: change.path, ...move, ownBefore: false, ownAfter: false });
        }
      }
      for (const found of classesBelow(above, key, pathOf, context.identities)) visit(found);
    }
  };
  below({
    path: '',
    before: [nodeMatchOf(before, '')],
    after: [nodeMatchOf(after, '')],
    ownBefore: true,
    ownAfter: true,
    sharedMore: false,
    sharedLess: false,
  });
  return changes;
}

/** Returns the label of a node in messages. Values of secret keys are redacted. */
function labelOf(node: PolicyNode, secretKeys: ReadonlySet<string>): string {
  const isSecret = shapeOf(node).kind === 'exact' && secretKeys.has(node.key) && !isCredential(node.key);
  return isSecret ? `${node.key}=${redacted(node.value)}` : node.label;
}

/** Returns the node of each side if the same node exists in both trees. */
function commonNodes({
  before,
  after,
  ownBefore,
  ownAfter,
}: DescriptorClass): readonly [NodeMatch, NodeMatch] | undefined {
  const [old, now] = [before[0], after[0]];
  return ownBefore && ownAfter && old !== undefined && now !== undefined ? [old, now] : undefined;
}

function classChanges(found: DescriptorClass, context: DiffContext): readonly PlacedChange[] {
  const { path, ownBefore, ownAfter } = found;
  const [old, now] = commonNodes(found) ?? [];
  if (old?.node !== undefined && now?.node !== undefined) {
    const share = shareChange(old.node, now.node, hasLimits(old.node, context), hasLimits(now.node, context));
    const changes = nodeChanges(old.node, now.node, context).map(({ item, ...change }) => ({
      ...change,
      path: path + item,
    }));
    return share === undefined ? changes : [{ ...share, path }, ...changes];
  }
  const kind = ownAfter ? 'appears' : ownBefore ? 'vanishes' : 'moves';
  return movedChanges(kind, found, context).map(({ item, ...change }) => ({
    ...change,
    path: path + item,
  }));
}

/** Tells whether the node, or a node below it, has a limit that ever denies. */
function hasLimits(node: PolicyNode, context: DiffContext): boolean {
  if (node.rules.some((rule) => isEnforced(rule, context.nowMicros))) return true;
  for (const child of node.children()) if (hasLimits(child, context)) return true;
  return false;
}
