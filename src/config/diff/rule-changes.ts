import {
  answerOf,
  describeFailurePolicy,
  isSameFailurePolicy,
  type StoreFailurePolicy,
  shareOf,
} from '../../limiter/failure-policy.js';
import { describeHeaders, describePhase } from '../../policy/describe.js';
import { plannedFields } from '../../policy/plans/plan-rate.js';
import type { DomainPolicy } from '../../policy/policy.js';
import { canDeny, type PhaseSchedule, type Rule } from '../../policy/rule.js';
import { effectOf, isSame, type LocalChange, plain, shift } from './change.js';
import { isSameLimit, narrowings, oldTimeWarning, reasonsOf, shortLimit } from './compare-limits.js';

/** What the comparison of single rules needs to know about both policies. */
export interface DiffContext {
  readonly domainBefore: DomainPolicy;
  readonly domainAfter: DomainPolicy;
  /** Wall clock. Phases that have ended are not compared. */
  readonly nowMicros: number;
  /** Names that a rule of either policy lists in `replaces`. */
  readonly replaced: ReadonlySet<string>;
  /** The larger number of rules with `quota_mode` in one policy. Quotas deny only together. */
  readonly quotas: number;
}

export function contextOf(before: DomainPolicy, after: DomainPolicy, nowMicros: number): DiffContext {
  const quotasIn = ({ rules }: DomainPolicy): number => rules.filter(({ quotaMode }) => quotaMode).length;
  return {
    domainBefore: before,
    domainAfter: after,
    nowMicros,
    replaced: new Set([...before.rules, ...after.rules].flatMap(({ replaces }) => replaces)),
    quotas: Math.max(quotasIn(before), quotasIn(after)),
  };
}

/** Returns the limits of a node, or of the absence of one. */
export function limitsOf(node: { readonly rules: readonly Rule[] } | undefined): readonly Rule[] {
  return node?.rules ?? [];
}

/** Returns the time from which a rule denies requests, at least `nowMicros`; Infinity if it never does. */
function enforcedFrom(rule: Rule, nowMicros: number): number {
  return canDeny(rule) ? Math.max(rule.phase.activeAtMicros, nowMicros) : Infinity;
}

/** Tells whether a rule, or the chain (`then`) that it belongs to, ever denies a request. */
export function isEnforced(rule: Rule, nowMicros: number): boolean {
  return enforcedFrom(asItsChain(rule), nowMicros) !== Infinity;
}

/** Returns a limit as it decides in its chain, with the settings of the last limit. */
function asItsChain(rule: Rule): Rule {
  return rule.spillsTo === '' ? rule : { ...rule, spillsTo: '' };
}

function hasChain(rules: readonly Rule[]): boolean {
  return rules.some(({ spillsTo }) => spillsTo !== '');
}

/**
 * Tells whether other rules may deny requests once a rule does not apply to them: the rules that it replaces, and other
 * quotas, because quotas deny only together.
 */
export function holdsBack({ replaces, quotaMode }: Rule, { quotas }: DiffContext): boolean {
  return replaces.length > 0 || (quotaMode && quotas > 1);
}

/** Tells whether a new rule denies requests, or replaces a quota, without which other quotas may deny. */
export function mayDeny(rule: Rule, { nowMicros, quotas }: DiffContext): boolean {
  return isEnforced(rule, nowMicros) || (rule.replaces.length > 0 && quotas > 0);
}

/**
 * Tells whether requests that meet the rules `after` instead of `before` may be denied more. `isShared`: more requests
 * than before take from one bucket. Only a rule that already denied as much makes sure that a rule denies no more.
 */
export function mayDenyMore(
  before: readonly Rule[],
  after: readonly Rule[],
  isShared: boolean,
  context: DiffContext,
): boolean {
  if (before.some((rule) => holdsBack(rule, context))) return true;
  const isSameChain = before.length === after.length && after.every((rule, i) => isSamePart(before[i], rule));
  const isComparable = !isShared && (isSameChain || !(hasChain(before) || hasChain(after)));
  return after.some(
    (rule) => mayDeny(rule, context) && !(isComparable && before.some((old) => covers(old, rule, context))),
  );
}

function isSamePart(before: Rule | undefined, after: Rule): boolean {
  return before?.spillsTo === after.spillsTo && isSameLimit(before, after);
}

function covers(before: Rule, after: Rule, { nowMicros, replaced }: DiffContext): boolean {
  const [was, is] = [asItsChain(before), asItsChain(after)];
  return (
    // The limits of customers depend on their rows, too.
    before.plan === undefined &&
    after.plan === undefined &&
    after.replaces.length === 0 &&
    // A rule that others replace does not always deny.
    (before.name === after.name || !replaced.has(before.name)) &&
    enforcedFrom(was, nowMicros) <= enforcedFrom(is, nowMicros) &&
    was.enforcePercent >= is.enforcePercent &&
    (is.quotaMode || !was.quotaMode) &&
    narrowings(was, is).length === 0
  );
}

/** A change, with the limit of a list that it is about: `[daily]`, or '' for the node or its only limit. */
export interface ItemChange extends LocalChange {
  readonly item: string;
}

/** Compares the limits of a node that both policies have. */
export function limitChanges(
  olds: readonly Rule[],
  nows: readonly Rule[],
  context: DiffContext,
): readonly ItemChange[] {
  const partners = pairRules(olds, nows);
  const pairs = nows.filter((now) => partners.has(now));
  const changes = pairs.flatMap((now) =>
    ruleChanges(partners.get(now) as Rule, now, context).map((change) => ({ ...change, item: itemOf(now) })),
  );
  for (const rule of nows.filter((now) => !partners.has(now))) {
    const after = brief(rule, context.nowMicros);
    const added = { setting: 'limit', effect: 'appears', tightens: mayDeny(rule, context), after } as const;
    changes.push({ ...added, text: after, item: itemOf(rule) });
  }
  const kept = new Set(partners.values());
  for (const rule of olds.filter((old) => !kept.has(old))) {
    const before = brief(rule, context.nowMicros);
    const tightens = holdsBack(rule, context) || (hasChain(olds) && isEnforced(rule, context.nowMicros));
    const text = tightens ? `${before}; ${OTHERS_MAY_DENY}` : before;
    changes.push({ setting: 'limit', effect: 'vanishes', tightens, before, text, item: itemOf(rule) });
  }
  return changes;
}

export const OTHERS_MAY_DENY = 'other limits may now deny more';

/** Pairs limits with their previous version: that with the same name, else the same limit, else the same position. */
function pairRules(olds: readonly Rule[], nows: readonly Rule[]): ReadonlyMap<Rule, Rule> {
  const partners = new Map<Rule, Rule>();
  const left = new Set(olds);
  const pair = (isPartner: (old: Rule, now: Rule, place: number) => boolean): void => {
    nows.forEach((now, place) => {
      const old = partners.has(now) ? undefined : [...left].find((one) => isPartner(one, now, place));
      if (old === undefined) return;
      partners.set(now, old);
      left.delete(old);
    });
  };
  pair((old, now) => old.name !== '' && old.name === now.name);
  pair((old, now) => isSameLimit(old, now));
  pair((old, now, place) => olds[place] === old && (old.name === '' || now.name === '' || olds.length === 1));
  return partners;
}

/** Returns the suffix of the rule's path in a list, such as `[daily]`. */
export function itemOf(rule: Rule): string {
  return rule.statSuffix === '' ? '' : rule.path.slice(rule.path.lastIndexOf('['));
}

/** Returns a short description of a limit: `10 per minute, monitoring`. */
export function brief(rule: Rule, nowMicros: number): string {
  if (rule.rate === undefined) return shortLimit(rule);
  const phase = describePhase(rule.phase, nowMicros);
  return [
    shortLimit(rule),
    phase === 'active' ? '' : phase,
    rule.shadowMode ? 'shadow mode' : '',
    rule.quotaMode ? 'quota mode' : '',
    rule.onOver === undefined ? '' : 'soft',
    rule.enforcePercent === 100 ? '' : `${rule.enforcePercent}% of denials enforced`,
  ]
    .filter((part) => part !== '')
    .join(', ');
}

/** A setting of a limit, as the comparison reads it. Two values are equal if their texts are, unless it has values. */
interface Setting {
  readonly name: string;
  readonly text: (rule: Rule, nowMicros: number) => string;
  readonly value?: (rule: Rule, nowMicros: number) => unknown;
  /** More means that more requests are denied. NaN: values cannot be compared. Absent: the setting denies nothing. */
  readonly strictness?: (rule: Rule, context: DiffContext) => number;
  readonly reason?: (after: Rule, before: Rule) => string;
}

const onOff = (value: boolean): string => (value ? 'on' : 'off');
const STARTS_OVER = "the rule's bucket starts over";
const NOT_COMPARABLE = (): number => NaN;

const SETTINGS: readonly Setting[] = [
  {
    name: 'phase',
    text: ({ phase }, nowMicros) => describePhase(phase, nowMicros),
    value: ({ phase }, nowMicros) => turnsOf(phase, nowMicros),
    strictness: ({ phase }, { nowMicros }) => -Math.max(phase.activeAtMicros, nowMicros),
    reason: ({ shadowMode }) => (shadowMode ? 'shadow_mode is on' : ''),
  },
  {
    name: 'shadow_mode',
    text: ({ shadowMode }) => onOff(shadowMode),
    strictness: ({ shadowMode }) => (shadowMode ? 0 : 1),
  },
  {
    name: 'on_over',
    text: ({ onOver }) => (onOver === undefined ? 'absent' : 'allow: true'),
    strictness: ({ onOver }) => (onOver === undefined ? 1 : 0),
  },
  {
    name: 'enforce_percent',
    text: ({ enforcePercent }) => `${enforcePercent}`,
    strictness: ({ enforcePercent }) => enforcePercent,
  },
  {
    name: 'quota_mode',
    text: ({ quotaMode }) => onOff(quotaMode),
    strictness: ({ quotaMode }) => (quotaMode ? 0 : 1),
    reason: ({ quotaMode }) =>
      quotaMode
        ? 'the rule now denies only together with all other quotas'
        : 'the rule now denies on its own',
  },
  { name: 'then', text: ({ spillsTo }) => quoted(spillsTo), strictness: NOT_COMPARABLE },
  {
    name: 'name',
    text: ({ name }) => quoted(name),
    // Other rules may replace this rule under one of the names only.
    strictness: ({ name }, { replaced }) => (replaced.has(name) ? NaN : 0),
    reason: ({ statSuffix }, before) => (statSuffix === before.statSuffix ? '' : STARTS_OVER),
  },
  {
    name: 'replaces',
    text: ({ replaces }) => [...new Set(replaces)].map(quoted).join(', ') || 'none',
    value: ({ replaces }) => [...new Set(replaces)].sort(),
    strictness: NOT_COMPARABLE,
  },
  {
    name: 'place',
    // The names of unnamed limits of a list are their positions.
    text: ({ name, statSuffix }) => {
      if (statSuffix === '') return 'alone';
      return name === '' ? `item ${statSuffix.slice(1)} of a list` : 'named item of a list';
    },
    reason: () => STARTS_OVER,
  },
];

/** Settings that can end the effect of a quota on other quotas. */
const QUOTA_SETTINGS = ['limit', 'phase', 'shadow_mode', 'on_over', 'quota_mode', 'enforce_percent'];

/** Returns one change per setting that differs between two versions of a rule. */
function ruleChanges(before: Rule, after: Rule, context: DiffContext): readonly LocalChange[] {
  const reason = 'applies while the store is unavailable';
  // An unlimited rule does not need the store.
  const failure = failureChange(before.onStoreFailure, after.onStoreFailure, reason);
  const changes = [
    rateChange(before, after, context),
    ...SETTINGS.map((setting) => settingChange(setting, before, after, context)),
    failure && after.rate === undefined
      ? { ...failure, effect: 'changes' as const, tightens: false }
      : failure,
    ...answerChanges(before, after, context),
    plain('plan', planOf(before), planOf(after), 'tightens'),
    plain('metadata', before.metadata, after.metadata),
    before.onOver && after.onOver && plain('on_over', before.onOver, after.onOver),
  ].filter((change) => change !== undefined);
  if (context.quotas < 2 || !(before.quotaMode || after.quotaMode)) return changes;
  return changes.map((change) =>
    QUOTA_SETTINGS.includes(change.setting) && !change.tightens
      ? { ...change, effect: 'tightens', tightens: true, text: `${change.text}; ${OTHERS_MAY_DENY}` }
      : change,
  );
}

function settingChange(
  { name, text, value = text, strictness = () => 0, reason = () => '' }: Setting,
  before: Rule,
  after: Rule,
  context: DiffContext,
): LocalChange | undefined {
  const { nowMicros } = context;
  if (isSame(value(before, nowMicros), value(after, nowMicros))) return undefined;
  const [was, is] = [strictness(before, context), strictness(after, context)];
  const tightens = Number.isNaN(was + is) || (is > was && isEnforced(after, nowMicros));
  const effect = effectOf(tightens, is < was && isEnforced(before, nowMicros));
  return shift(name, effect, text(before, nowMicros), text(after, nowMicros), reason(after, before));
}

/** Returns the fields that take values from a plan; undefined without any. */
function planOf({ plan }: Rule): object | undefined {
  return plan && plannedFields(plan);
}

function rateChange(before: Rule, after: Rule, { nowMicros }: DiffContext): LocalChange | undefined {
  const [was, is] = [shortLimit(before), shortLimit(after)];
  const [denied, denies] = [isEnforced(before, nowMicros), isEnforced(after, nowMicros)];
  const [tighter, looser] = [narrowings(before, after), narrowings(after, before)];
  if (isSameLimit(before, after) && tighter.length + looser.length === 0) return undefined;
  if (tighter.length > 0 && denies)
    return shift('limit', 'tightens', was, is, reasonsOf(tighter, 'tightens'));
  // An unlimited rule never denies, so only the old rule has to be enforced.
  if (tighter.length === 0 && looser.length > 0 && denied && (denies || after.rate === undefined))
    return shift('limit', 'loosens', was, is, reasonsOf(looser, 'loosens') + oldTimeWarning(before, after));
  const idle = denied && denies ? '' : 'the rule never denies';
  return shift('limit', 'changes', was, is, tighter.length + looser.length > 0 ? idle : '');
}

/** Reports a setting of a node that is on or off. */
export function flagChange(
  setting: string,
  before: boolean,
  after: boolean,
  effect: LocalChange['effect'] = 'changes',
  reason = '',
): LocalChange | undefined {
  return before === after ? undefined : shift(setting, effect, onOff(before), onOff(after), reason);
}

/**
 * Compares failure policies: `deny` allows least and `allow` most. `error` (Envoy decides) and `local` can each deny
 * requests that the other allows.
 */
export function failureChange(
  was: StoreFailurePolicy,
  is: StoreFailurePolicy,
  reason: string,
): LocalChange | undefined {
  if (isSameFailurePolicy(was, is)) return undefined;
  const isSmallerShare = answerOf(was) !== 'local' || shareOf(is) < shareOf(was);
  const tightens = is !== 'allow' && was !== 'deny' && (answerOf(is) !== 'local' || isSmallerShare);
  const [old, now] = [describeFailurePolicy(was), describeFailurePolicy(is)];
  return shift('on_store_failure', effectOf(tightens, true), old, now, reason);
}

/** Reports a changed phase of limits in requests, which are not part of a rule. */
export function phaseChange(
  before: PhaseSchedule,
  after: PhaseSchedule,
  reason: string,
  nowMicros: number,
): LocalChange | undefined {
  if (isSamePhase(before, after, nowMicros)) return undefined;
  const [was, is] = [Math.max(before.activeAtMicros, nowMicros), Math.max(after.activeAtMicros, nowMicros)];
  const [old, now] = [describePhase(before, nowMicros), describePhase(after, nowMicros)];
  return shift('phase', effectOf(is < was, is > was), old, now, reason);
}

/** Tells whether two schedules have the same phase at every time from `nowMicros` on. */
export function isSamePhase(a: PhaseSchedule, b: PhaseSchedule, nowMicros: number): boolean {
  return isSame(turnsOf(a, nowMicros), turnsOf(b, nowMicros));
}

/** Returns when each phase starts, as text. Times in the past are equal; '' for a phase that never takes effect. */
function turnsOf(
  { gracePeriodAtMicros, activeAtMicros }: PhaseSchedule,
  nowMicros: number,
): readonly string[] {
  const [grace, active] = [gracePeriodAtMicros, activeAtMicros].map((at) => Math.max(at, nowMicros)) as [
    number,
    number,
  ];
  return [grace >= active ? '' : `${grace}`, `${active}`];
}

/** Returns the changes of answers that describe the rule. Changed defaults are reported for the domain. */
function answerChanges(
  before: Rule,
  after: Rule,
  { domainBefore, domainAfter }: DiffContext,
): readonly (LocalChange | undefined)[] {
  if (before.rate === undefined && after.rate === undefined) return [];
  const headersChange = (
    key: string,
    field: 'responseHeaders' | 'requestHeaders',
  ): LocalChange | undefined => {
    const text = ({ [field]: own }: Rule): string =>
      own === undefined ? "the domain's value" : describeHeaders(own);
    const [was, is] = [before[field] ?? domainBefore[field], after[field] ?? domainAfter[field]];
    const isOwn = before[field] !== undefined || after[field] !== undefined;
    return isOwn && !isSame(was, is) ? shift(key, 'changes', text(before), text(after)) : undefined;
  };
  const bodies = [
    bodyOf(before.deniedResponse ?? domainBefore.deniedResponse),
    bodyOf(after.deniedResponse ?? domainAfter.deniedResponse),
  ];
  return [
    headersChange('response_headers', 'responseHeaders'),
    headersChange('request_headers', 'requestHeaders'),
    isSame(...(bodies as [unknown, unknown]))
      ? undefined
      : plain('denied_response', before.deniedResponse, after.deniedResponse),
  ];
}

/** Returns undefined for a response without a body, because its content type is not sent either. */
export function bodyOf(denied: Rule['deniedResponse']): Rule['deniedResponse'] {
  return denied?.preset === 'none' && denied.body === '' ? undefined : denied;
}

/** Returns the name of a rule in quotes. */
function quoted(name: string): string {
  return name === '' ? 'none' : `"${name}"`;
}
