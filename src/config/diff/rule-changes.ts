import type { WindowRate } from '../../limiter/fixed-window.js';
import type { Rate } from '../../limiter/rate.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { describeLimit, describePhase } from '../../policy/describe.js';
import { columnNames } from '../../policy/plans/plan-rate.js';
import { keptText } from '../../policy/priorities.js';
import { canDeny, type Rule } from '../../policy/rule.js';
import {
  ANSWER_SETTINGS,
  type DiffContext,
  failureSetting,
  isSame,
  type LocalChange,
  onOff,
  phaseSetting,
  type Setting,
  settingChanges,
  shift,
} from './change.js';

/**
 * Tells whether a rule may ever deny a request. For a limit that spills (`then`), tells whether its chain may. Rows of
 * plans may set the phase of a limit, and deny blocked customers at soft limits.
 */
function isEnforced(rule: Rule, { mayBlock }: DiffContext): boolean {
  const onOver = mayBlock ? undefined : rule.onOver;
  const isEverActive = rule.plan !== undefined || rule.phase.activeAtMicros !== Infinity;
  return isEverActive && canDeny({ ...rule, onOver, nextLimit: '' });
}

/** Tells whether an added rule may cause denials. A rule that replaces a quota lets the other quotas deny. */
export function mayDeny(rule: Rule, context: DiffContext): boolean {
  return isEnforced(rule, context) || (rule.replaces.length > 0 && context.hasQuotas);
}

/** Tells whether other limits may deny more after a change of this rule. weir does not compare such rules. */
export function affectsOthers({ nextLimit, quotaMode, replaces }: Rule): boolean {
  return nextLimit !== '' || quotaMode || replaces.length > 0;
}

export const OTHERS_MAY_DENY = 'other limits may now deny more';
const NOT_COMPARED = 'the effect of limits on each other is not compared';

/** A change at a path of the tree, as in {@link Rule.path}. */
export type PlacedChange = LocalChange & { readonly path: string };

/** Compares the limits of a node that both policies have. `path`: path of the node */
export function limitChanges(
  olds: readonly Rule[],
  nows: readonly Rule[],
  path: string,
  context: DiffContext,
): readonly PlacedChange[] {
  const partners = pairRules(olds, nows);
  const kept = new Set(partners.values());
  const added = nows.filter((now) => !partners.has(now));
  const removed = olds.filter((old) => !kept.has(old));
  return [
    ...[...partners].flatMap(([now, old]) =>
      ruleChanges(old, now, context).map((change) => ({ ...change, path: path + itemOf(now) })),
    ),
    ...added.map((rule) => wholeRule('appears', rule, path, mayDeny(rule, context), '', context)),
    ...removed.map((rule) => {
      const reason = affectsOthers(rule) ? OTHERS_MAY_DENY : '';
      return wholeRule('vanishes', rule, path, affectsOthers(rule), reason, context);
    }),
  ];
}

/** Reports a rule that is added or removed. */
export function wholeRule(
  effect: 'appears' | 'vanishes',
  rule: Rule,
  path: string,
  tightens: boolean,
  reason: string,
  context: DiffContext,
): PlacedChange {
  const limit = brief(rule, context);
  const shown = effect === 'appears' ? { after: limit } : { before: limit };
  const text = reason === '' ? limit : `${limit}; ${reason}`;
  return { setting: 'limit', effect, tightens, path: path + itemOf(rule), ...shown, text };
}

/** Pairs new limits with old ones: those with the same name, else those at the same position. */
export function pairRules(olds: readonly Rule[], nows: readonly Rule[]): ReadonlyMap<Rule, Rule> {
  const namesOf = (rules: readonly Rule[]) => new Map(rules.map((rule) => [rule.name || rule, rule]));
  const [oldNames, nowNames] = [namesOf(olds), namesOf(nows)];
  const isSingle = olds.length === 1 && nows.length === 1;
  const partners = new Map<Rule, Rule>();
  for (const [place, now] of nows.entries()) {
    const [named, at] = [oldNames.get(now.name), olds[place]];
    if (named !== undefined) partners.set(now, named);
    else if (at !== undefined && !nowNames.has(at.name) && (isSingle || at.name === '' || now.name === ''))
      partners.set(now, at);
  }
  return partners;
}

/** Formats the place of a rule in a list: `[daily]`; '' for a rule outside of a list. */
function itemOf(rule: Rule): string {
  return rule.statSuffix === '' ? '' : rule.path.slice(rule.path.lastIndexOf('['));
}

/** Formats a limit with its phase: `10 per minute, monitoring`. */
export function brief(rule: Rule, { nowMicros }: DiffContext): string {
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

const quoted = (name: string): string => (name === '' ? 'none' : `"${name}"`);

/** Settings that decide whether requests are denied, and that rules which affect others do not compare. */
const DECIDING: readonly Setting<Rule>[] = [
  {
    ...phaseSetting,
    counts: isEnforced,
    reason: ({ shadowMode }) => (shadowMode ? 'shadow_mode is on' : ''),
  },
  {
    name: 'shadow_mode',
    text: ({ shadowMode }) => onOff(shadowMode),
    isStricter: (before) => before.shadowMode,
    counts: isEnforced,
  },
  {
    name: 'on_over',
    value: ({ onOver }) => onOver,
    isStricter: (before, after) => before.onOver !== undefined && after.onOver === undefined,
    counts: isEnforced,
  },
  {
    name: 'enforce_percent',
    text: ({ enforcePercent }) => `${enforcePercent}`,
    isStricter: (before, after) => after.enforcePercent > before.enforcePercent,
    counts: isEnforced,
  },
  {
    name: 'priorities',
    // The order of classes has no effect.
    value: ({ priorities }) =>
      priorities && {
        ...priorities,
        classes: Object.fromEntries(priorities.classes.map((one) => [one.name, keptText(one)])),
      },
    // If a class leaves more, its requests may be denied, and if it leaves less, those of other classes.
    isStricter: () => true,
    counts: isEnforced,
    reason: ({ priorities: is }, { priorities: was }) =>
      is?.by === was?.by ? '' : "the rule's bucket starts over",
  },
  {
    name: 'lease',
    value: ({ rate, lease }) => rate?.lease && lease,
    // A process may deny a request although another one has tokens.
    isStricter: (_, { rate }) => rate?.lease !== undefined,
    counts: isEnforced,
  },
  { name: 'quota_mode', text: ({ quotaMode }) => onOff(quotaMode) },
  { name: 'then', text: ({ nextLimit }) => quoted(nextLimit) },
  {
    name: 'replaces',
    text: ({ replaces }) => [...new Set(replaces)].map(quoted).join(', ') || 'none',
    value: ({ replaces }) => [...new Set(replaces)].sort(),
  },
  {
    name: 'name',
    text: ({ name }) => quoted(name),
    // Other rules replace this rule under one of the names only.
    isStricter: (before, after, { replaced }) => replaced.has(before.name) || replaced.has(after.name),
  },
  {
    name: 'plan',
    // The rows show what other numbers of a plan change, unless they are unknown.
    value: ({ plan }, { hasUnknownRows }) => (hasUnknownRows ? plan : plan && columnNames(plan)),
    isStricter: () => true,
  },
];
const DECIDING_NAMES: ReadonlySet<string> = new Set(['limit', ...DECIDING.map(({ name }) => name)]);

const OTHER_SETTINGS: readonly Setting<Rule>[] = [
  {
    ...failureSetting,
    // An unlimited rule does not need the store.
    counts: ({ rate }) => rate !== undefined,
    reason: () => 'applies while the store is unavailable',
  },
  {
    name: 'place',
    text: ({ statSuffix }) => (statSuffix === '' ? 'alone' : `item ${statSuffix.slice(1)} of a list`),
    reason: () => "the rule's bucket starts over",
  },
  { name: 'metadata', value: ({ metadata }) => metadata },
];

export function ruleChanges(before: Rule, after: Rule, context: DiffContext): readonly LocalChange[] {
  const [was, is] = [
    withDefaults(before, after, context.domainBefore),
    withDefaults(after, before, context.domainAfter),
  ];
  const hasAnswers = before.rate !== undefined && after.rate !== undefined;
  const changes = [
    ...rateChange(before, after, context),
    ...settingChanges(DECIDING, before, after, context),
    ...settingChanges(OTHER_SETTINGS, before, after, context),
    ...(hasAnswers ? settingChanges(ANSWER_SETTINGS, was, is, context) : []),
  ];
  if (!affectsOthers(before) && !affectsOthers(after)) return changes;
  return changes.map((change) => {
    const text = `${change.text}; ${NOT_COMPARED}`;
    return DECIDING_NAMES.has(change.setting)
      ? { ...change, effect: 'tightens', tightens: true, text }
      : change;
  });
}

/** Adds answers that a rule takes from its domain if the other version of the rule sets them. */
function withDefaults(rule: Rule, other: Rule, domain: CompiledPolicy): Rule {
  return {
    ...rule,
    responseHeaders: rule.responseHeaders ?? (other.responseHeaders && domain.responseHeaders),
    requestHeaders: rule.requestHeaders ?? (other.requestHeaders && domain.requestHeaders),
    deniedResponse: rule.deniedResponse ?? (other.deniedResponse && domain.deniedResponse),
  };
}

function rateChange(before: Rule, after: Rule, context: DiffContext): readonly LocalChange[] {
  const [was, is] = [shortLimit(before), shortLimit(after)];
  const [denied, denies] = [isEnforced(before, context), isEnforced(after, context)];
  const [tighter, looser] = [narrowings(before, after), narrowings(after, before)];
  const isSameLimit = tighter.length + looser.length === 0;
  if (isSameLimit) return isSame(before.hold, after.hold) ? [] : [shift('limit', 'changes', was, is)];
  if (tighter.length > 0 && denies)
    return [shift('limit', 'tightens', was, is, reasonsOf(tighter, 'tightens'))];
  // An unlimited rule never denies, so only the old rule has to be enforced.
  if (tighter.length === 0 && denied && (denies || after.rate === undefined)) {
    const reason = reasonsOf(looser, 'loosens') + oldTimeWarning(before, after);
    return [shift('limit', 'loosens', was, is, reason)];
  }
  return [shift('limit', 'changes', was, is, denied && denies ? '' : 'the rule never denies')];
}

/** A rate with its holds; an unlimited rule has neither. */
type Limit = Pick<Rule, 'rate' | 'hold'> & Partial<Pick<Rule, 'shared'>>;

/** A reason why one limit could deny a request that another limit allows. */
type Narrowing = keyof typeof REASONS;

/** The text for a change that narrows a limit, and for the reverse change. */
const REASONS = {
  closed: { tightens: 'every request is now denied', loosens: 'every request was denied' },
  limited: { tightens: 'there was no limit', loosens: 'there is no longer a limit' },
  fewer_per_window: { tightens: 'fewer hits per window', loosens: 'more hits per window' },
  denied_hits_count: { tightens: 'denied hits now count as well', loosens: 'denied hits no longer count' },
  fewer_at_once: { tightens: 'fewer hits at once', loosens: 'more hits at once' },
  slower_refill: { tightens: 'slower refill', loosens: 'faster refill' },
  fewer_in_flight: { tightens: 'fewer concurrent requests', loosens: 'more concurrent requests' },
  // Two limits that cannot be compared each narrow the other, so such a change always tightens.
  other_kind: { tightens: 'the two limits cannot be compared', loosens: '' },
} as const;

function reasonsOf(found: readonly Narrowing[], effect: 'tightens' | 'loosens'): string {
  return found.map((one) => REASONS[one][effect]).join(', ');
}

/**
 * Returns the reasons why `after` could deny a request that `before` allows; [] if it never does. Compares two token
 * buckets, two windows of the same length, and two limits on concurrent requests. Any other two limits, and limits with
 * different debts or holds, cannot be compared.
 */
export function narrowings(before: Limit, after: Limit): readonly Narrowing[] {
  const [was, is] = [before.rate, after.rate];
  if (is === undefined || deniesAll(was)) return [];
  if (deniesAll(is)) return ['closed'];
  if (was === undefined) return ['limited'];
  if (!isSame(holdWithoutRetry(before), holdWithoutRetry(after)) || !hasSameDebt(was, is))
    return ['other_kind'];
  if (was.kind === 'concurrency' && is.kind === 'concurrency')
    return is.max < was.max ? ['fewer_in_flight'] : [];
  if (was.kind === 'token_bucket' && is.kind === 'token_bucket') {
    // One token takes p / q microseconds.
    const isSlower =
      BigInt(is.refillNumerator) * BigInt(was.refillDenominator) >
      BigInt(was.refillNumerator) * BigInt(is.refillDenominator);
    return [
      ...(is.maxTokens < was.maxTokens ? one('fewer_at_once') : []),
      ...(isSlower ? one('slower_refill') : []),
    ];
  }
  if (was.kind !== 'window' || is.kind !== 'window' || !hasSameWindows(was, is)) return ['other_kind'];
  if (is.requestsPerUnit < was.requestsPerUnit) return ['fewer_per_window'];
  // Windows of a list do not count denied hits, so a request with too many hits leaves more for later requests.
  return was.countsOnlyAllowed === true && is.countsOnlyAllowed !== true ? ['denied_hits_count'] : [];
}

const one = (code: Narrowing): readonly Narrowing[] => [code];

/**
 * Returns a warning if buckets need less time to fill than before. A reload keeps the time until a bucket is full, so
 * an empty bucket stays empty until its old time is as near as the new one. Otherwise, returns ''.
 */
function oldTimeWarning({ rate: was }: Limit, { rate: is }: Limit): string {
  if (was?.kind !== 'token_bucket' || is?.kind !== 'token_bucket') return '';
  const fillTime = (one: typeof was, other: typeof was): bigint =>
    BigInt(one.maxTokens) * BigInt(one.refillNumerator) * BigInt(other.refillDenominator);
  return fillTime(is, was) < fillTime(was, is)
    ? '; buckets in use keep their old time until full, unless "weir bucket reset" fills them'
    : '';
}

function hasSameDebt(a: Rate, b: Rate): boolean {
  return a.maxDebt === b.maxDebt && a.minChargeHits === b.minChargeHits;
}

/** Returns the fields of a hold that decide on requests: not those that only change a header. */
function holdWithoutRetry({ hold }: Limit): object | undefined {
  return hold && { ...hold, retryAfterSeconds: undefined };
}

/** Tells whether the rate denies every request. */
function deniesAll(rate: Rate | undefined): boolean {
  return rate?.kind === 'window' && rate.requestsPerUnit === 0;
}

function hasSameWindows(a: WindowRate, b: WindowRate): boolean {
  if (isEpochAligned(a) && isEpochAligned(b)) return a.lengthMicros === b.lengthMicros;
  return a.calendar?.timeZone === b.calendar?.timeZone && a.calendar?.unit === b.calendar?.unit;
}

/** Tells whether windows start at multiples of their length since the epoch, as days in UTC do. */
function isEpochAligned({ calendar }: WindowRate): boolean {
  if (calendar === undefined) return true;
  const isUtc = /^(?:Etc\/)?(?:UTC|UCT|GMT|Zulu|Universal)$/i.test(calendar.timeZone);
  return isUtc && calendar.unit === 'day';
}

/** Formats a limit: `10 per minute`, `token bucket (100 tokens, 10 every 1s)`. */
function shortLimit(limit: Limit): string {
  return describeLimit(limit)
    .replace(/^window: /, '')
    .replace(/^token bucket: (.*)$/, 'token bucket ($1)');
}
