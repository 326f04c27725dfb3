import type { PolicyNode } from '../../policy/policy-node.js';
import { isCredential, redacted } from '../../policy/redact.js';
import type { Rule } from '../../policy/rule.js';
import { matcherField } from '../../policy/values/value-matcher.js';
import { listSome } from '../../runtime/texts.js';
import {
  activeAt,
  type DiffContext,
  isSame,
  type LocalChange,
  onOff,
  phaseSetting,
  type Setting,
  settingChanges,
  unmatchedSetting,
} from './change.js';
import {
  affectsOthers,
  brief,
  limitChanges,
  mayDeny,
  OTHERS_MAY_DENY,
  type PlacedChange,
  pairRules,
  wholeRule,
} from './rule-changes.js';

/** The nodes of a level that match several values. Added and removed nodes share values only with these nodes. */
class Sharers {
  readonly nodes: readonly PolicyNode[];
  /** These nodes and all nodes below them. */
  readonly subtrees: readonly PolicyNode[];

  constructor(level: readonly PolicyNode[]) {
    this.nodes = level.filter((node) => node.kind !== 'exact');
    this.subtrees = this.nodes.flatMap((node) => [...node.withDescendants()]);
  }
}

const NO_SHARERS = new Sharers([]);

/**
 * Compares two trees node by node. A node is the same in both if it has the same parent, key and value; a list has the
 * same first item. Changes are in the order of the new tree, with removed nodes at the end of their level.
 */
export class TreeChanges {
  readonly #context: DiffContext;
  readonly #secretKeys: ReadonlySet<string>;
  /** Rules at customers of plans that both trees have. */
  readonly customerRules: (readonly [before: Rule, after: Rule])[] = [];

  constructor(context: DiffContext, secretKeys: ReadonlySet<string>) {
    this.#context = context;
    this.#secretKeys = secretKeys;
  }

  /** Yields the changes below a node that both trees have. */
  *below(before: PolicyNode, after: PolicyNode): Generator<PlacedChange> {
    for (const key of new Set([...after.levels.keys(), ...before.levels.keys()])) {
      const olds = before.levels.get(key)?.nodes ?? [];
      const nows = after.levels.get(key)?.nodes ?? [];
      const [oldsByName, nowsByName] = [nodesByName(olds), nodesByName(nows)];
      const isNew = (now: PolicyNode): boolean => !oldsByName.has(nameOf(now));
      const removed = olds.filter((old) => !nowsByName.has(nameOf(old)));
      const sharersBefore = nows.some(isNew) ? new Sharers(olds) : NO_SHARERS;
      const sharersAfter = removed.length > 0 ? new Sharers(nows) : NO_SHARERS;
      yield* this.#orderChanges(nows, oldsByName);
      for (const now of nows) {
        const old = oldsByName.get(nameOf(now));
        if (old === undefined) yield* this.#wholeNode('appears', now, sharersBefore);
        else yield* this.#nodeChanges(old, now);
      }
      for (const old of removed) yield* this.#wholeNode('vanishes', old, sharersAfter);
    }
  }

  /** Returns the path of a node in messages. Values of secret keys are redacted. */
  #pathOf(node: PolicyNode): string {
    const labels = node.path().map((one) => {
      const isSecret = one.kind === 'exact' && this.#secretKeys.has(one.key) && !isCredential(one.key);
      return isSecret ? `${one.key}=${redacted(one.value)}` : one.label;
    });
    return labels.join('/');
  }

  *#nodeChanges(before: PolicyNode, after: PolicyNode): Generator<PlacedChange> {
    const path = this.#pathOf(after);
    if (after.hasCustomer)
      for (const [now, old] of pairRules(before.rules, after.rules)) this.customerRules.push([old, now]);
    const limits = limitChanges(before.rules, after.rules, path, this.#context);
    const isReported = ({ setting, tightens }: LocalChange): boolean =>
      limits.some((limit) => limit.setting === setting && (limit.tightens || !tightens));
    const isInherited = ({ setting }: LocalChange): boolean =>
      [before, after].every((node) => this.#isInheritedBy(node, setting));
    yield* itemsChange(before, after, path);
    yield* limits;
    for (const change of settingChanges(NODE_SETTINGS, before, after, this.#context))
      if (!isReported(change) && !isInherited(change)) yield { ...change, path };
    yield* this.below(before, after);
  }

  /** Tells whether a node has the setting of its parent, for which a change is reported once. */
  #isInheritedBy(node: PolicyNode, setting: string): boolean {
    const { parent } = node;
    if (parent === undefined) return false;
    const phaseOf = (one: PolicyNode): unknown => phaseSetting.value(one, this.#context);
    if (setting === 'phase') return isSame(phaseOf(parent), phaseOf(node));
    return setting === 'on_unmatched' && parent.onUnmatched === node.onUnmatched;
  }

  /** Reports another order of patterns or regular expressions. Other limits may apply to values that match several. */
  *#orderChanges(
    nows: readonly PolicyNode[],
    oldsByName: ReadonlyMap<string, PolicyNode>,
  ): Generator<PlacedChange> {
    for (const kind of ['pattern', 'regex']) {
      const common = nows.filter((now) => now.kind === kind && oldsByName.has(nameOf(now)));
      const places = common.map((now) => oldsByName.get(nameOf(now))?.id ?? 0);
      const first = common.findIndex((_, i) => (places[i + 1] ?? Infinity) < (places[i] ?? 0));
      const [node, next] = [common[first], common[first + 1]];
      if (node === undefined || next === undefined) continue;
      const text = `now precedes ${this.#pathOf(next)}; other limits may apply to values that match several nodes`;
      yield { path: this.#pathOf(node), setting: 'order', effect: 'tightens', tightens: true, text };
    }
  }

  /** Reports a node that is added or removed. `level`: nodes of the other tree that may match its values. */
  *#wholeNode(effect: 'appears' | 'vanishes', node: PolicyNode, level: Sharers): Generator<PlacedChange> {
    const isNew = effect === 'appears';
    // A node without a value matches only what no other node matches.
    const sharers = node.kind === 'any' ? NO_SHARERS : level;
    const own = [...node.withDescendants()];
    const [olds, nows] = isNew ? [sharers.subtrees, own] : [own, sharers.subtrees];
    const phase = this.#phaseChange(olds, nows);
    const denies = (rule: Rule): boolean => mayDeny(rule, this.#context);
    const othersMayDeny =
      olds.some(({ rules }) => rules.some(affectsOthers)) ||
      (!isNew && nows.some(({ rules }) => rules.some(denies)));
    const place = this.#placeText(sharers);
    const reasons = [
      place === '' ? '' : `${isNew ? 'previously' : 'now'} ${place}`,
      othersMayDeny ? OTHERS_MAY_DENY : '',
      phase?.text ?? '',
    ];
    const reason = reasons.filter((one) => one !== '').join('; ');
    const tightens = othersMayDeny || phase !== undefined;
    const isShown = tightens || node.levels.size === 0 || sharers.nodes.length > 0;
    if (node.rules.length === 0 && isShown)
      yield {
        setting: 'limit',
        effect,
        tightens,
        path: this.#pathOf(node),
        text: reason === '' ? 'no limit' : `no limit; ${reason}`,
      };
    for (const one of own) {
      const [atTop, because] = one === node ? [tightens, reason] : [false, ''];
      for (const rule of one.rules) {
        const ruleTightens = atTop || (isNew && denies(rule));
        yield wholeRule(effect, rule, this.#pathOf(one), ruleTightens, because, this.#context);
      }
    }
  }

  /** Returns where values of an added or removed node are in the other tree, if that is clear; '' otherwise. */
  #placeText({ nodes }: Sharers): string {
    const [node] = nodes;
    if (node === undefined) return 'no limit';
    if (nodes.length > 1 || node.kind !== 'any') return '';
    const limits = node.rules.map((rule) => brief(rule, this.#context)).join(' and ');
    return limits === '' ? `no limit at ${this.#pathOf(node)}` : `${limits} from rule ${this.#pathOf(node)}`;
  }

  /**
   * Reports whether limits in requests, which have the phase of the node that matches, or of the domain, may become
   * active earlier.
   */
  #phaseChange(olds: readonly PolicyNode[], nows: readonly PolicyNode[]): LocalChange | undefined {
    const { domainBefore, domainAfter } = this.#context;
    const isEarlier = (one: PhasedNode, other: PhasedNode): boolean =>
      activeAt(one, this.#context) < activeAt(other, this.#context);
    let latest: PhasedNode = domainBefore;
    for (const old of olds) if (isEarlier(latest, old)) latest = old;
    let earliest: PhasedNode = domainAfter;
    for (const now of nows) if (isEarlier(now, earliest)) earliest = now;
    const changes = settingChanges([OVERRIDES_PHASE], latest, earliest, this.#context);
    return changes.find(({ tightens }) => tightens);
  }
}

type PhasedNode = Pick<PolicyNode, 'phase'>;

const OVERRIDES_PHASE: Setting<PhasedNode> = {
  ...phaseSetting,
  reason: () => 'applies only to limits in requests',
};

const NODE_SETTINGS: readonly Setting<PolicyNode>[] = [
  {
    name: 'share_threshold',
    text: ({ shareThreshold }) => onOff(shareThreshold),
    isStricter: (_, after) => after.shareThreshold,
    counts: (node, context) =>
      [...node.withDescendants()].some(({ rules }) => rules.some((rule) => mayDeny(rule, context))),
    reason: ({ shareThreshold }) =>
      shareThreshold
        ? 'all matching values now share one bucket'
        : 'each matching value now has its own bucket',
  },
  { name: 'detailed_metric', text: ({ fields }) => onOff(fields.detailedMetric) },
  { name: 'value_to_metric', text: ({ valueToMetric }) => onOff(valueToMetric) },
  unmatchedSetting,
  OVERRIDES_PHASE,
];

/** Returns what identifies a node on its level. A list has the name of its first item. */
function nameOf(node: PolicyNode): string {
  return `${node.kind} ${node.matcher?.items[0] ?? node.value}`;
}

function nodesByName(nodes: readonly PolicyNode[]): ReadonlyMap<string, PolicyNode> {
  return new Map(nodes.map((node) => [nameOf(node), node]));
}

/** Reports a list of address blocks or regular expressions with other items, which other limits may apply to. */
function* itemsChange(before: PolicyNode, after: PolicyNode, path: string): Generator<PlacedChange> {
  if (before.matcher === undefined || after.matcher === undefined) return;
  const without = (items: readonly string[], others: readonly string[]): string => {
    const left = items.filter((item) => !others.includes(item));
    return listSome(left, 3, (item) => item.slice(0, 60));
  };
  const [was, is] = [before.matcher.items, after.matcher.items];
  const [added, gone] = [without(is, was), without(was, is)];
  if (added === '' && gone === '') return;
  const parts = [added && `now also matches ${added}`, gone && `no longer matches ${gone}`];
  const text = `${parts.filter((part) => part !== '').join('; ')}; other limits may apply to these values`;
  yield { path, setting: matcherField(after.matcher), effect: 'tightens', tightens: true, text };
}
