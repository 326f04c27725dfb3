import { MatchWork } from '../../policy/match-work.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { isCredential, redacted } from '../../policy/redact.js';
import { matcherField, matcherName } from '../../policy/values/value-matcher.js';
import { firstNames } from '../../quantity.js';
import { effectOf, isSame, type LocalChange, shift } from './change.js';
import {
  brief,
  type DiffContext,
  flagChange,
  holdsBack,
  type ItemChange,
  isSamePhase,
  itemOf,
  limitChanges,
  limitsOf,
  mayDeny,
  mayDenyMore,
  OTHERS_MAY_DENY,
  phaseChange,
} from './rule-changes.js';

/** A change at a path of the tree, as in {@link Rule.path}. */
export type PlacedChange = LocalChange & { readonly path: string };

/** A node, or undefined for values that no node matches. */
type Match = PolicyNode | undefined;

/** The order in which the nodes of a level are tried. */
const KINDS = ['exact', 'cidr', 'pattern', 'regex', 'any'] as const;

function kindOf({ matcher, value, wildcard }: PolicyNode): (typeof KINDS)[number] {
  if (matcher !== undefined) return matcher.kind;
  if (value === '') return 'any';
  return wildcard === undefined ? 'exact' : 'pattern';
}

/** Returns the value, the address blocks, the pattern or the regular expressions of a node. */
function itemsOf({ matcher, value }: PolicyNode): readonly string[] {
  return matcher?.items ?? [value];
}

/**
 * Compares two trees node by node. A node is the same in both if it has the same parent, key and value. Changes are in
 * the order of the new tree, with removed nodes at the end of their level.
 */
export class TreeChanges {
  readonly #context: DiffContext;
  readonly #secretKeys: ReadonlySet<string>;
  readonly #below = new Map<PolicyNode, Subtree>();

  constructor(context: DiffContext, secretKeys: ReadonlySet<string>) {
    this.#context = context;
    this.#secretKeys = secretKeys;
  }

  /** Yields the changes below a node that both trees have. */
  *below(before: PolicyNode, after: PolicyNode, path = ''): Generator<PlacedChange> {
    for (const key of new Set([...after.levels.keys(), ...before.levels.keys()])) {
      const [olds, nows] = [nodesAt(before, key), nodesAt(after, key)];
      const partners = pairNodes(olds, nows);
      const back = new Map([...partners].map(([now, old]) => [old, now]));
      yield* this.#orderChanges(nows, partners, path);
      for (const now of nows) {
        const old = partners.get(now);
        if (old === undefined)
          yield* this.#moved('appears', now, othersOf(before, now, partners, back), path);
        else yield* this.#nodeChanges(old, now, this.#pathOf(path, now));
      }
      for (const old of olds)
        if (!back.has(old)) yield* this.#moved('vanishes', old, othersOf(after, old, back, partners), path);
    }
  }

  /** Returns the path of a node in messages. Values of secret keys are redacted. */
  #pathOf(parent: string, node: PolicyNode): string {
    const isSecret = kindOf(node) === 'exact' && this.#secretKeys.has(node.key) && !isCredential(node.key);
    const label = isSecret ? `${node.key}=${redacted(node.value)}` : node.label;
    return parent === '' ? label : `${parent}/${label}`;
  }

  *#nodeChanges(before: PolicyNode, after: PolicyNode, path: string): Generator<PlacedChange> {
    const limits = limitChanges(limitsOf(before), limitsOf(after), this.#context);
    const own = [
      itemsChange(before, after),
      this.#shareChange(before, after),
      ...limits,
      firstItemChange(before, after),
      flagChange('detailed_metric', before.fields.detailedMetric, after.fields.detailedMetric),
      flagChange('value_to_metric', before.valueToMetric, after.valueToMetric),
      hasInheritedUnmatched(before) && hasInheritedUnmatched(after)
        ? undefined
        : unmatchedChange(before, after),
      this.#overridesChange(before, after, limits),
    ].filter((change) => change !== undefined);
    for (const { item = '', ...change } of own as readonly (LocalChange & Partial<ItemChange>)[])
      yield { ...change, path: path + item };
    yield* this.below(before, after, path);
  }

  #shareChange(before: PolicyNode, after: PolicyNode): LocalChange | undefined {
    const effect = after.shareThreshold
      ? effectOf(this.#subtreeOf(after).denies, false)
      : effectOf(false, this.#subtreeOf(before).denies);
    const reason = after.shareThreshold
      ? 'all matching values now share one bucket'
      : 'each matching value now has its own bucket';
    return flagChange('share_threshold', before.shareThreshold, after.shareThreshold, effect, reason);
  }

  /** Reports a changed phase of a node, unless the change is already reported for its parent or its limits. */
  #overridesChange(
    before: PolicyNode,
    after: PolicyNode,
    limits: readonly LocalChange[],
  ): LocalChange | undefined {
    const { nowMicros } = this.#context;
    const isInherited = ({ parent, phase }: PolicyNode): boolean =>
      parent !== undefined && isSamePhase(parent.phase, phase, nowMicros);
    if (isInherited(before) && isInherited(after)) return undefined;
    const change = phaseChange(before.phase, after.phase, ON_OVERRIDES, nowMicros);
    const reported = limits.filter(({ setting }) => setting === 'phase');
    if (reported.length === 0) return change;
    return change?.tightens === true && !reported.some(({ tightens }) => tightens) ? change : undefined;
  }

  /** Reports another order of patterns or regular expressions. Other limits may apply to values that match several. */
  *#orderChanges(
    nows: readonly PolicyNode[],
    partners: ReadonlyMap<PolicyNode, PolicyNode>,
    parent: string,
  ): Generator<PlacedChange> {
    const placeOf = (node: PolicyNode | undefined): number => (node && partners.get(node)?.id) ?? Infinity;
    for (const kind of ['pattern', 'regex']) {
      const common = nows.filter((node) => kindOf(node) === kind && partners.has(node));
      const first = common.findIndex((node, i) => placeOf(node) > placeOf(common[i + 1]));
      const [node, next] = common.slice(first, first + 2);
      if (first < 0 || node === undefined || next === undefined) continue;
      const overtaken = this.#pathOf(parent, next);
      const text = `now precedes ${overtaken}; other limits may apply to values that match several nodes`;
      yield {
        ...{ path: this.#pathOf(parent, node), setting: 'order' },
        ...{ effect: 'tightens', tightens: true, text },
      };
    }
  }

  /**
   * Yields the changes of a node that is added or removed, and of those below it. `others` are the nodes that match its
   * values in the other tree; undefined below another such node, which reports what the other nodes below it did.
   */
  *#moved(
    kind: 'appears' | 'vanishes',
    node: PolicyNode,
    others: readonly Match[] | undefined,
    parent: string,
  ): Generator<PlacedChange> {
    const { nowMicros, domainBefore, domainAfter } = this.#context;
    const path = this.#pathOf(parent, node);
    const pairs = (others ?? [undefined]).map((other): readonly [before: Match, after: Match] =>
      kind === 'appears' ? [other, node] : [node, other],
    );
    const phases = pairs.flatMap(([before, after]) => {
      const [was, is] = [(before ?? domainBefore).phase, (after ?? domainAfter).phase];
      return phaseChange(was, is, ON_OVERRIDES, nowMicros) ?? [];
    });
    const phase = phases.find(({ tightens }) => tightens) ?? phases[0];
    const below = others?.map((other) => this.#belowOf(other)) ?? [];
    // Limits below the other nodes apply no longer, or from now on.
    const isReleasing =
      pairs.some(([before]) => limitsOf(before).some((rule) => holdsBack(rule, this.#context))) ||
      below.some((subtree) => (kind === 'appears' ? subtree.holdsBack : subtree.denies));
    const tightens =
      isReleasing ||
      pairs.some(([before, after]) =>
        mayDenyMore(limitsOf(before), limitsOf(after), after?.shareThreshold === true, this.#context),
      );
    const change = {
      setting: 'limit',
      effect: kind,
      tightens: tightens || phase?.tightens === true,
    } as const;
    const tail =
      others === undefined
        ? ''
        : `; ${kind === 'vanishes' ? 'now' : 'previously'} ${this.#matchesText(others, parent)}`;
    const because = isReleasing ? `${tail}; ${OTHERS_MAY_DENY}` : tail;
    const rules = limitsOf(node);
    const isExemption =
      others?.some((other) => limitsOf(other).length > 0) || below.some(({ denies }) => denies);
    if (rules.length === 0 && (isExemption || tightens))
      yield { ...change, path, text: `no limit${because}` };
    else if (rules.length === 0 && phase !== undefined) yield { ...phase, effect: kind, path };
    for (const rule of rules) {
      const limit = brief(rule, nowMicros);
      const shown = kind === 'appears' ? { after: limit } : { before: limit };
      yield { ...change, ...shown, path: path + itemOf(rule), text: limit + because };
    }
    for (const child of node.children()) yield* this.#moved(kind, child, undefined, path);
  }

  /** Returns the limits of matches with their paths: `10 per minute from rule customer`, or `no limit`. */
  #matchesText(matches: readonly Match[], parent: string): string {
    const texts = matches.map((node) => {
      if (node === undefined) return 'no limit';
      const rules = limitsOf(node).map((rule) => brief(rule, this.#context.nowMicros));
      const path = this.#pathOf(parent, node);
      return rules.length === 0 ? `no limit at ${path}` : `${rules.join(' and ')} from rule ${path}`;
    });
    const more = texts.length > MAX_SHOWN ? `, or ${texts.length - MAX_SHOWN} others` : '';
    return texts.slice(0, MAX_SHOWN).join(', or ') + more;
  }

  /** Returns what the nodes below a node do together. */
  #belowOf(node: Match): Subtree {
    let known = node && this.#below.get(node);
    if (known === undefined) {
      const below = [...(node?.children() ?? [])].map((child) => this.#subtreeOf(child));
      known = {
        denies: below.some(({ denies }) => denies),
        holdsBack: below.some((subtree) => subtree.holdsBack),
      };
      if (node !== undefined) this.#below.set(node, known);
    }
    return known;
  }

  #subtreeOf(node: PolicyNode): Subtree {
    const { domainBefore, domainAfter, nowMicros } = this.#context;
    const below = this.#belowOf(node);
    const limits = limitsOf(node);
    // The phase of a node also applies to limits in requests. Without a node, that of the domain does.
    const activeAt = ({ phase }: Pick<PolicyNode, 'phase'>): number =>
      Math.max(phase.activeAtMicros, nowMicros);
    const [was, is, own] = [activeAt(domainBefore), activeAt(domainAfter), activeAt(node)];
    return {
      denies: below.denies || own < Math.max(was, is) || limits.some((rule) => mayDeny(rule, this.#context)),
      holdsBack:
        below.holdsBack || own > Math.min(was, is) || limits.some((rule) => holdsBack(rule, this.#context)),
    };
  }
}

/** Whether the limits of a subtree deny requests, and whether they keep other limits from denying. */
interface Subtree {
  readonly denies: boolean;
  readonly holdsBack: boolean;
}

const ON_OVERRIDES = 'applies only to limits in requests';
/** Maximum number of nodes, or of items of a list, that a sentence names. */
const MAX_SHOWN = 3;

function nodesAt(parent: PolicyNode, key: string): readonly PolicyNode[] {
  return parent.levels.get(key)?.nodes ?? [];
}

/** Pairs new nodes with old ones: those with the same items, else lists with the same first item, which has grown. */
function pairNodes(
  olds: readonly PolicyNode[],
  nows: readonly PolicyNode[],
): ReadonlyMap<PolicyNode, PolicyNode> {
  const partners = new Map<PolicyNode, PolicyNode>();
  const left = new Set(olds);
  const identities = [
    (node: PolicyNode) => JSON.stringify([kindOf(node), ...[...itemsOf(node)].sort()]),
    (node: PolicyNode) => JSON.stringify([kindOf(node), itemsOf(node)[0]]),
  ];
  for (const identityOf of identities) {
    const known = new Map([...left].map((node) => [identityOf(node), node]));
    for (const now of nows) {
      const old = partners.has(now) ? undefined : known.get(identityOf(now));
      if (old === undefined || !left.delete(old)) continue;
      partners.set(now, old);
    }
  }
  return partners;
}

/**
 * Returns the matches in the other tree, below `parent`, for values of a node that this tree does not have: all nodes
 * that may match one of them. `partners` and `back` lead from the nodes of this tree to those of the other one, and
 * back.
 */
function othersOf(
  parent: PolicyNode,
  node: PolicyNode,
  partners: ReadonlyMap<PolicyNode, PolicyNode>,
  back: ReadonlyMap<PolicyNode, PolicyNode>,
): readonly Match[] {
  if (kindOf(node) === 'exact') {
    return [parent.find(node.key, node.value, new MatchWork())];
  }
  // A node that both trees have, and that is tried before this one, takes the same values in both.
  const isFirst = (twin: PolicyNode | undefined): boolean =>
    twin !== undefined &&
    isTriedBefore(twin, node) &&
    isSame(itemsOf(twin), itemsOf(partners.get(twin) as PolicyNode));
  const others = nodesAt(parent, node.key).filter(
    (other) => kindOf(other) !== 'exact' && !isFirst(back.get(other)),
  );
  return others.some((other) => kindOf(other) === 'any') ? others : [...others, undefined];
}

function isTriedBefore(node: PolicyNode, other: PolicyNode): boolean {
  const [rank, otherRank] = [KINDS.indexOf(kindOf(node)), KINDS.indexOf(kindOf(other))];
  // Of two address blocks, the longer one is tried first.
  return rank < otherRank || (rank === otherRank && kindOf(node) !== 'cidr' && node.id < other.id);
}

/** Reports a list of address blocks or regular expressions with other items, which other limits may apply to. */
function itemsChange(before: PolicyNode, after: PolicyNode): LocalChange | undefined {
  if (after.matcher === undefined) return undefined;
  const without = (items: readonly string[], others: readonly string[]): string => {
    const left = items.filter((item) => !others.includes(item));
    return firstNames(left, MAX_SHOWN, (item) => item.slice(0, 60));
  };
  const [added, gone] = [without(itemsOf(after), itemsOf(before)), without(itemsOf(before), itemsOf(after))];
  if (added === '' && gone === '') return undefined;
  const parts = [added && `now also matches ${added}`, gone && `no longer matches ${gone}`];
  const text = `${parts.filter((part) => part !== '').join('; ')}; other limits may apply to these values`;
  return { setting: matcherField(after.matcher), effect: 'tightens', tightens: true, text };
}

/** Reports another first item of a list, because weir names the node after this item. */
function firstItemChange(before: PolicyNode, after: PolicyNode): LocalChange | undefined {
  if (before.matcher === undefined || after.matcher === undefined) return undefined;
  const [was, is] = [matcherName(before.matcher), matcherName(after.matcher)];
  if (was === is) return undefined;
  const named = after.shareThreshold
    ? 'the statistics and the shared bucket are named'
    : 'the statistics are named';
  const reason = `${named} after the first item of the list and start over`;
  return shift(matcherField(after.matcher), 'changes', `first item ${was}`, `first item ${is}`, reason);
}

/** Reports a changed `on_unmatched`. Unmatched requests are allowed in both modes, and only the log differs. */
export function unmatchedChange(
  { onUnmatched: was }: PolicyNode,
  { onUnmatched: is }: PolicyNode,
): LocalChange | undefined {
  return was === is ? undefined : shift('on_unmatched', 'changes', was, is, 'affects only the log');
}

function hasInheritedUnmatched({ parent, onUnmatched }: PolicyNode): boolean {
  return parent?.onUnmatched === onUnmatched;
}
