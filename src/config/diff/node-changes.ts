import { describePhase } from '../../policy/describe.js';
import type { UnmatchedMode } from '../../policy/policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import type { Rule } from '../../policy/rule.js';
import { matcherField, matcherName } from '../../policy/values/value-matcher.js';
import { asItsChain, chainOf } from './chains.js';
import { effectOf, type LocalChange, shift } from './change.js';
import { isSameLimit, shortLimit } from './compare-limits.js';
import { couldDeny, isEnforced, isSamePhase } from './enforcement.js';
import {
  type DiffContext,
  onOff,
  phaseChange,
  reversed,
  ruleChanges,
  thenChange,
  unmatchedChange,
  whyOthersCanDeny,
} from './rule-changes.js';

/** A change, with the limit of a list that it is about: `[daily]`, or '' for the node or its only limit. */
export interface NodeChange extends LocalChange {
  readonly item: string;
}

const NO_RULES: readonly Rule[] = [];

/** Returns the differences between two versions of a node, without those of its child nodes. */
export function nodeChanges(
  before: PolicyNode,
  after: PolicyNode,
  context: DiffContext,
): readonly NodeChange[] {
  const changes: NodeChange[] = [];
  const add = (item: string, found: readonly (LocalChange | undefined)[]): void => {
    for (const change of found) if (change !== undefined) changes.push({ ...change, item });
  };
  const [olds, nows] = [before.rules, after.rules];
  const { pairs, gone, added } = pairRules(olds, nows);
  for (const [old, now] of pairs) {
    const settings = ruleChanges(asItsChain(old), asItsChain(now), context);
    add(itemOf(now), [...settings, thenChange(old, now)]);
  }
  // These limits have no counterpart: the node had no limit before, or has none now, or a list gained or lost an item.
  for (const rule of added) {
    const onlyPays = chainOf(rule, nows).some((one) => pairs.some(([, now]) => now === one));
    add(itemOf(rule), [(onlyPays ? paying : appearing)(asItsChain(rule), context.nowMicros)]);
  }
  for (const rule of gone) {
    const rest = pairs.filter(([old]) => chainOf(rule, olds).includes(old));
    const isLess = rest.some(([, now]) => isEnforced(asItsChain(now), context.nowMicros));
    const loose = isLess ? 'the rest of its chain denies earlier' : whyOthersCanDeny([rule], nows, context);
    add(itemOf(rule), [vanishing(rule, loose, context.nowMicros)]);
  }
  add('', [orderChange(before, pairs), firstItemChange(before, after)]);
  add('', [
    flag('detailed_metric', before.fields.detailedMetric, after.fields.detailedMetric),
    flag('value_to_metric', before.valueToMetric, after.valueToMetric),
    isInheritedUnmatched(before, after) ? undefined : unmatchedChange(before, after),
    overridesChange(before, after, pairs, context.nowMicros),
  ]);
  return changes;
}

/** Reports a new order of the named limits in a list. Unnamed limits start over, which is reported for each of them. */
function orderChange(before: PolicyNode, pairs: PairedRules['pairs']): LocalChange | undefined {
  const named = pairs.filter(([old, now]) => old.statSuffix === now.statSuffix);
  const places = named.map(([old]) => before.rules.indexOf(old));
  if (places.every((place, i) => i === 0 || place > (places[i - 1] as number))) return undefined;
  const names = (order: typeof named): string => order.map(([, now]) => itemOf(now)).join(', ');
  const old = named.toSorted(([a], [b]) => before.rules.indexOf(a) - before.rules.indexOf(b));
  return shift(
    'order',
    'changes',
    names(old),
    names(named),
    'on a tie between limits, answers describe the first one',
  );
}

const ON_OVERRIDES = 'applies only to limits in requests';

/** Reports a changed phase of a node, unless the change is already reported for its limits or its parent. */
function overridesChange(
  before: PolicyNode,
  after: PolicyNode,
  pairs: PairedRules['pairs'],
  nowMicros: number,
): LocalChange | undefined {
  const isSame = (one: PolicyNode | Rule, other: PolicyNode | Rule): boolean =>
    isSamePhase(one.phase, other.phase, nowMicros);
  const [above, aboveNow] = [before.parent, after.parent];
  if (above !== undefined && aboveNow !== undefined && isSame(above, before) && isSame(aboveNow, after))
    return undefined;
  if (pairs.some(([old, now]) => !isSame(old, now))) return undefined;
  return phaseChange(before.phase, after.phase, ON_OVERRIDES, nowMicros);
}

/**
 * Returns the effect on the log of a node without limits that appears or vanishes. Its `on_unmatched` applies to
 * descriptors that end at the node or have no matching child. An inherited mode is reported for the parent.
 */
function unmatchedMoved(kind: 'appears' | 'vanishes', move: Move): readonly NodeChange[] {
  const own = kind === 'vanishes' ? move.before[0]?.node : move.after[0]?.node;
  if (own === undefined || own.parent?.onUnmatched === own.onUnmatched) return [];
  for (const before of move.before) {
    for (const after of move.after) {
      const change = unmatchedChange(before, after);
      if (change !== undefined) return [{ ...change, effect: kind, item: '' }];
    }
  }
  return [];
}

/**
 * Returns the effect of a move without limits on limit overrides, whose phase is that of the node where a descriptor
 * ends.
 */
function overridesMoved(
  kind: 'appears' | 'vanishes' | 'moves',
  move: Move,
  context: DiffContext,
): readonly NodeChange[] {
  for (const { node: before } of move.before) {
    for (const { node: after } of move.after) {
      const [was, is] = [before ?? context.domainBefore, after ?? context.domainAfter];
      const change = phaseChange(was.phase, is.phase, ON_OVERRIDES, context.nowMicros);
      if (change !== undefined)
        return [{ ...change, effect: kind === 'moves' ? change.effect : kind, item: '' }];
    }
  }
  return [];
}

/**
 * Reports a change of the first item in a list of blocks or regular expressions, because weir names the node after this
 * item.
 */
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

function flag(setting: string, before: boolean, after: boolean): LocalChange | undefined {
  return before === after ? undefined : shift(setting, 'changes', onOff(before), onOff(after));
}

/**
 * Tells whether both nodes have the same `on_unmatched` as their parents. The change is then reported for the parents.
 */
function isInheritedUnmatched(before: PolicyNode, after: PolicyNode): boolean {
  return before.parent?.onUnmatched === before.onUnmatched && after.parent?.onUnmatched === after.onUnmatched;
}

function appearing(rule: Rule, nowMicros: number): LocalChange {
  const after = brief(rule, nowMicros);
  return { setting: 'limit', effect: 'appears', tightens: isEnforced(rule, nowMicros), after, text: after };
}

/** Returns the change for a new limit that only pays for requests that an earlier limit would deny. */
function paying(rule: Rule, nowMicros: number): LocalChange {
  const after = brief(rule, nowMicros);
  const text = `${after}; it only pays for requests that would be denied`;
  return { setting: 'limit', effect: 'appears', tightens: false, after, text };
}

/** `loose`: the reason why other rules could deny without this one, see {@link whyOthersCanDeny}. */
function vanishing(rule: Rule, loose: string, nowMicros: number): LocalChange {
  const before = brief(rule, nowMicros);
  const text = loose === '' ? before : `${before}; ${loose}`;
  return { setting: 'limit', effect: 'vanishes', tightens: loose !== '', before, text };
}

interface PairedRules {
  readonly pairs: readonly (readonly [Rule, Rule])[];
  readonly gone: readonly Rule[];
  readonly added: readonly Rule[];
}

/**
 * Pairs each limit with its previous version: the one with the same name, else the same limit, else the same position.
 */
function pairRules(before: readonly Rule[], after: readonly Rule[]): PairedRules {
  const partners = new Map<Rule, Rule>();
  const left = new Set(before);
  const pair = (isPartner: (old: Rule, now: Rule, place: number) => boolean): void => {
    after.forEach((now, place) => {
      if (partners.has(now)) return;
      const old = [...left].find((candidate) => isPartner(candidate, now, place));
      if (old === undefined) return;
      partners.set(now, old);
      left.delete(old);
    });
  };
  pair((old, now) => old.name !== '' && old.name === now.name);
  pair((old, now) => isSameLimit(old, now));
  pair(
    (old, now, place) => before[place] === old && (old.name === '' || now.name === '' || before.length === 1),
  );
  return {
    pairs: after.flatMap((now) => {
      const old = partners.get(now);
      return old === undefined ? [] : [[old, now] as const];
    }),
    gone: before.filter((old) => left.has(old)),
    added: after.filter((now) => !partners.has(now)),
  };
}

/** Returns the suffix of the rule's path in a list, such as `[daily]`. */
function itemOf(rule: Rule): string {
  return rule.statSuffix === '' ? '' : rule.path.slice(rule.path.lastIndexOf('['));
}

/** Returns a short description of a limit: `10 per minute, monitoring`. */
export function brief(rule: Rule, nowMicros: number): string {
  const parts = [shortLimit(rule)];
  const phase = describePhase(rule.phase, nowMicros);
  if (rule.rate !== undefined) {
    if (phase !== 'active') parts.push(phase);
    if (rule.shadowMode) parts.push('shadow mode');
    if (rule.quotaMode) parts.push('quota mode');
    if (rule.onOver !== undefined) parts.push('soft');
    if (rule.enforcePercent !== 100) parts.push(`${rule.enforcePercent}% of denials enforced`);
  }
  return parts.join(', ');
}

/** A node that matches a set of values, or the absence of one. */
export interface NodeMatch {
  /** undefined if no node matches the values. */
  readonly node: PolicyNode | undefined;
  /** Path of the node in messages. */
  readonly path: string;
  /** Mode of the node; without a node, the mode of the last node that matched the descriptor. */
  readonly onUnmatched: UnmatchedMode;
}

/** Returns the match of a node, with the node's `on_unmatched` mode. */
export function nodeMatchOf(node: PolicyNode, path: string): NodeMatch {
  return { node, path, onUnmatched: node.onUnmatched };
}

/** Values that were matched by some nodes before and are matched by others, or none, after. */
export interface Move {
  readonly before: readonly NodeMatch[];
  readonly after: readonly NodeMatch[];
  /** Whether requests share a bucket after the move but not before, and the reverse. */
  readonly sharedMore: boolean;
  readonly sharedLess: boolean;
}

export interface MoveEffect {
  readonly tightens: boolean;
  readonly loosens: boolean;
}

/** Compares the limits of each node before with the limits of each node after. Returns the effect on requests. */
export function moveEffect(move: Move, context: DiffContext): MoveEffect {
  const { nowMicros } = context;
  const back = reversed(context);
  let [tightens, loosens] = [false, false];
  for (const { node: before } of move.before) {
    for (const { node: after } of move.after) {
      const [old, now] = [before?.rules ?? NO_RULES, after?.rules ?? NO_RULES];
      tightens ||=
        couldDeny(old, now, move.sharedMore, nowMicros) || whyOthersCanDeny(old, now, context) !== '';
      loosens ||= couldDeny(now, old, move.sharedLess, nowMicros) || whyOthersCanDeny(now, old, back) !== '';
      if (tightens && loosens) return { tightens, loosens };
    }
  }
  return { tightens, loosens };
}

/** Returns the first reason that {@link whyOthersCanDeny} finds for a pair of nodes, or ''. */
function whyOthersCanDenyAfter(move: Move, context: DiffContext): string {
  for (const { node: before } of move.before) {
    for (const { node: after } of move.after) {
      const loose = whyOthersCanDeny(before?.rules ?? NO_RULES, after?.rules ?? NO_RULES, context);
      if (loose !== '') return loose;
    }
  }
  return '';
}

const MAX_MATCHES_SHOWN = 3;

/**
 * Returns limits with their paths: `10 per minute from rule customer`, `no limit at customer=free`, or `no limit`.
 * Separates the limits of different values by `or`.
 */
export function matchesText(matches: readonly NodeMatch[], nowMicros: number): string {
  const texts = matches.map(({ node, path }) => {
    if (node === undefined) return 'no limit';
    const { rules } = node;
    if (rules.length === 0) return `no limit at ${path}`;
    return `${rules.map((rule) => brief(rule, nowMicros)).join(' and ')} from rule ${path}`;
  });
  const shown = texts.slice(0, MAX_MATCHES_SHOWN).join(', or ');
  return texts.length > MAX_MATCHES_SHOWN ? `${shown}, or ${texts.length - MAX_MATCHES_SHOWN} others` : shown;
}

/**
 * Returns the changes of a node that is added or removed, or whose values move to another node, according to `kind`.
 */
export function movedChanges(
  kind: 'appears' | 'vanishes' | 'moves',
  move: Move,
  context: DiffContext,
): readonly NodeChange[] {
  const { nowMicros } = context;
  const effect = moveEffect(move, context);
  const own = kind === 'vanishes' ? move.before[0] : move.after[0];
  const others = kind === 'vanishes' ? move.after : move.before;
  const rules = own?.node?.rules ?? [];
  const tail = `${kind === 'vanishes' ? 'now' : 'previously'} ${matchesText(others, nowMicros)}`;
  if (kind === 'moves') {
    if (!effect.tightens && !effect.loosens) return overridesMoved(kind, move, context);
    const [before, after] = [matchesText(move.before, nowMicros), matchesText(move.after, nowMicros)];
    return [{ ...shift('limit', effectOf(effect.tightens, effect.loosens), before, after), item: '' }];
  }
  // Rules elsewhere may now deny requests that they allowed before.
  const loose = whyOthersCanDenyAfter(move, context);
  const because = loose === '' ? '' : `; ${loose}`;
  // A node without limits only leads to its children, unless it exempts its values from a limit. Only an exemption is a
  // change.
  const isExemption = rules.length === 0 && others.some(({ node }) => (node?.rules ?? NO_RULES).length > 0);
  if (rules.length === 0 && !isExemption) {
    return [...overridesMoved(kind, move, context), ...unmatchedMoved(kind, move)];
  }
  if (isExemption) {
    const text = `no limit; ${tail}${because}`;
    return [{ setting: 'limit', effect: kind, tightens: effect.tightens, text, item: '' }];
  }
  return rules.map((rule) => {
    const limit = brief(rule, nowMicros);
    const shown = kind === 'appears' ? { after: limit } : { before: limit };
    const text = `${limit}; ${tail}${because}`;
    const tightens = effect.tightens && (kind === 'vanishes' || isEnforced(rule, nowMicros) || loose !== '');
    return { setting: 'limit', effect: kind, tightens, ...shown, text, item: itemOf(rule) };
  });
}

/**
 * Reports a changed `share_threshold`. `limited`, `limits`: whether a limit at the node or below denied before, or
 * denies now.
 */
export function shareChange(
  before: PolicyNode,
  after: PolicyNode,
  limited: boolean,
  limits: boolean,
): LocalChange | undefined {
  if (before.shareThreshold === after.shareThreshold) return undefined;
  const reason = after.shareThreshold
    ? 'all matching values now share one bucket'
    : 'each matching value now has its own bucket';
  const effect = effectOf(after.shareThreshold && limits, before.shareThreshold && limited);
  return shift('share_threshold', effect, onOff(before.shareThreshold), onOff(after.shareThreshold), reason);
}
