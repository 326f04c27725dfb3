import {
  describeFailurePolicy,
  isSameFailurePolicy,
  type StoreFailurePolicy,
} from '../../limiter/failure-policy.js';
import { describeHeaders, describePhase } from '../../policy/describe.js';
import { plannedFields } from '../../policy/plans/plan-rate.js';
import type { DomainPolicy, DomainSettings, UnmatchedMode } from '../../policy/policy.js';
import type { DeniedResponse, HeaderFamilies, PhaseSchedule, Rule } from '../../policy/rule.js';
import { effectOf, isSame, type LocalChange, plain, shift } from './change.js';
import { isSameLimit, narrowings, shortLimit } from './compare-limits.js';
import { reasonsOf } from './compare-rates.js';
import { enforcedFrom, isEnforced, isSamePhase, shareEffect, suppressesQuotasFrom } from './enforcement.js';
import { Identities } from './value-shape.js';

type HeadersField = 'responseHeaders' | 'requestHeaders';

/**
 * Settings of a domain that apply to answers unless a rule sets them, and the phase of limit overrides outside the
 * tree.
 */
type AnswerSettings = Pick<DomainSettings, HeadersField | 'deniedResponse'> & Pick<DomainPolicy, 'phase'>;

/** The parts of a policy beyond a single rule. */
type PolicyScope = AnswerSettings & { readonly rules: readonly Rule[] };

/** The parts of both policies beyond a single rule. */
export interface DiffContext {
  readonly identities: Identities;
  readonly domainBefore: AnswerSettings;
  readonly domainAfter: AnswerSettings;
  readonly nowMicros: number;
  /** Names that a rule lists in `replaces`. */
  readonly replacedBefore: ReadonlySet<string>;
  readonly replacedAfter: ReadonlySet<string>;
  /** Names of rules that deny at some time. */
  readonly denyingBefore: ReadonlySet<string>;
  readonly denyingAfter: ReadonlySet<string>;
  /** Names of quotas that keep other quotas from denying at some time, see {@link suppressesQuotasFrom}. */
  readonly suppressingBefore: ReadonlySet<string>;
  readonly suppressingAfter: ReadonlySet<string>;
  /** Number of rules with `quota_mode` that deny at some time. */
  readonly quotasBefore: number;
  readonly quotasAfter: number;
}

/** Collects what the comparison of single rules needs to know about both policies. */
export function contextOf(before: PolicyScope, after: PolicyScope, nowMicros: number): DiffContext {
  const [old, now] = [summarizeRules(before.rules, nowMicros), summarizeRules(after.rules, nowMicros)];
  return {
    nowMicros,
    identities: new Identities(),
    domainBefore: before,
    domainAfter: after,
    replacedBefore: old.replaced,
    replacedAfter: now.replaced,
    denyingBefore: old.denying,
    denyingAfter: now.denying,
    suppressingBefore: old.suppressing,
    suppressingAfter: now.suppressing,
    quotasBefore: old.quotas,
    quotasAfter: now.quotas,
  };
}

interface RuleSummary {
  readonly replaced: ReadonlySet<string>;
  readonly denying: ReadonlySet<string>;
  readonly suppressing: ReadonlySet<string>;
  readonly quotas: number;
}

function summarizeRules(rules: readonly Rule[], nowMicros: number): RuleSummary {
  const denying = rules.filter((rule) => isEnforced(rule, nowMicros));
  const suppressing = rules.filter((rule) => suppressesQuotasFrom([rule], nowMicros) < Infinity);
  return {
    suppressing: new Set(suppressing.map(({ name }) => name)),
    replaced: new Set(rules.flatMap(({ replaces }) => replaces)),
    denying: new Set(denying.map(({ name }) => name)),
    quotas: denying.filter(({ quotaMode }) => quotaMode).length,
  };
}

/** Returns the context with before and after exchanged. */
export function reversed(context: DiffContext): DiffContext {
  return {
    nowMicros: context.nowMicros,
    identities: context.identities,
    domainBefore: context.domainAfter,
    domainAfter: context.domainBefore,
    replacedBefore: context.replacedAfter,
    replacedAfter: context.replacedBefore,
    denyingBefore: context.denyingAfter,
    denyingAfter: context.denyingBefore,
    suppressingBefore: context.suppressingAfter,
    suppressingAfter: context.suppressingBefore,
    quotasBefore: context.quotasAfter,
    quotasAfter: context.quotasBefore,
  };
}

/**
 * Returns the reason why rules elsewhere could deny requests that match `after` instead of `before`: rules that are no
 * longer replaced, or quotas, which deny only together. Returns '' if no rule could.
 */
export function whyOthersCanDeny(
  before: readonly Rule[],
  after: readonly Rule[],
  context: DiffContext,
): string {
  if (!before.some(({ replaces, quotaMode }) => quotaMode || replaces.length > 0)) return '';
  const still = new Set(after.flatMap(({ replaces }) => replaces));
  const names = new Set(before.flatMap(({ replaces }) => replaces));
  const loose = [...names].filter((name) => !still.has(name) && context.denyingAfter.has(name));
  if (loose.length > 0)
    return `${loose.map(quoted).join(', ')} ${loose.length > 1 ? 'are' : 'is'} no longer replaced`;
  return otherQuotasCanDeny(before, after, context) ? OTHER_QUOTAS_CAN_DENY : '';
}

const OTHER_QUOTAS_CAN_DENY = 'other quotas can now deny without this quota';

/**
 * Tells whether quotas elsewhere can at some time deny requests that `before` kept them from denying and `after` does
 * not.
 */
function otherQuotasCanDeny(before: readonly Rule[], after: readonly Rule[], context: DiffContext): boolean {
  const { nowMicros, quotasAfter } = context;
  const held = suppressesQuotasFrom(before, nowMicros);
  if (held === Infinity || suppressesQuotasFrom(after, nowMicros) <= held) return false;
  const own = after.filter((rule) => rule.quotaMode && isEnforced(rule, nowMicros)).length;
  return quotasAfter > own;
}

/** Returns one change per setting that differs between two versions of a rule. */
export function ruleChanges(before: Rule, after: Rule, context: DiffContext): readonly LocalChange[] {
  const { nowMicros } = context;
  const was = isEnforced(before, nowMicros);
  const is = isEnforced(after, nowMicros);
  const counted = was || deniesTogether(before, context.quotasBefore);
  const counts = is || deniesTogether(after, context.quotasAfter);
  const changes: (LocalChange | undefined)[] = [
    rateChange(before, after, counted, counts),
    ...enforcementChanges(before, after, nowMicros),
    percentChange(before, after, was, is),
    quotaChange(before, after, was && is),
    nameChange(before, after, context),
    replacesChange(before, after, context),
    placeChange(before, after),
    failureChange(before, after, is),
    ...answerChanges(before, after, context),
    plain('plan', valuesOf(before), valuesOf(after)),
    plain('metadata', before.metadata, after.metadata),
    before.onOver && after.onOver && plain('on_over', before.onOver, after.onOver),
  ];
  const found = changes.filter((change) => change !== undefined);
  return otherQuotasCanDeny([before], [after], context) ? withQuotaCause(found) : found;
}

/** Returns the change of `then`. A limit denies less if another one pays for the requests over it. */
export function thenChange({ spillsTo: was }: Rule, { spillsTo: is }: Rule): LocalChange | undefined {
  if (was === is) return undefined;
  const effect = was === '' ? 'loosens' : is === '' ? 'tightens' : 'changes';
  return shift('then', effect, was === '' ? 'unset' : quoted(was), is === '' ? 'unset' : quoted(is));
}

/** Returns the fields that take values from a plan; undefined without any. */
function valuesOf({ plan }: Rule): object | undefined {
  return plan && plannedFields(plan);
}

/** Settings that can remove a quota from a request, the most likely cause first. */
const QUOTA_SETTINGS = ['quota_mode', 'shadow_mode', 'phase', 'limit'];

/** Marks the change that caused a quota to stop holding back other quotas as tightening. */
function withQuotaCause(changes: readonly LocalChange[]): readonly LocalChange[] {
  const cause = QUOTA_SETTINGS.find((setting) => changes.some((change) => change.setting === setting));
  return changes.map((change) =>
    change.setting === cause
      ? { ...change, effect: 'tightens', tightens: true, text: `${change.text}; ${OTHER_QUOTAS_CAN_DENY}` }
      : change,
  );
}

/**
 * Tells whether a quota with `enforce_percent: 0` can still be the last quota that has to deny for all of them to deny.
 */
function deniesTogether(rule: Rule, quotas: number): boolean {
  return rule.enforcePercent === 0 && rule.quotaMode && !rule.shadowMode && quotas > 0;
}

function rateChange(before: Rule, after: Rule, denied: boolean, denies: boolean): LocalChange | undefined {
  const [was, is] = [shortLimit(before), shortLimit(after)];
  const tighter = narrowings(before, after);
  const looser = narrowings(after, before);
  if (isSameLimit(before, after) && tighter.length + looser.length === 0) return undefined;
  // An unlimited rule never denies, so only the other rule has to be enforced.
  if (tighter.length > 0 && denies && (denied || before.rate === undefined)) {
    return shift('limit', 'tightens', was, is, reasonsOf(tighter, 'tightens'));
  }
  if (tighter.length === 0 && looser.length > 0 && denied && (denies || after.rate === undefined)) {
    return shift('limit', 'loosens', was, is, reasonsOf(looser, 'loosens'));
  }
  const idle = denied && denies ? '' : 'the rule never denies';
  return shift('limit', 'changes', was, is, tighter.length + looser.length > 0 ? idle : '');
}

/** Returns the changes of `phase`, `shadow_mode` and `on_over`, which decide from when on the rule denies. */
function enforcementChanges(before: Rule, after: Rule, nowMicros: number): readonly LocalChange[] {
  const [was, is] = [enforcedFrom(before, nowMicros), enforcedFrom(after, nowMicros)];
  // The change of the rate already reports a rule that gains or loses its limit.
  const limited = before.rate !== undefined && after.rate !== undefined;
  const percentOnly = before.enforcePercent === 0 || after.enforcePercent === 0;
  const effect = effectOf(limited && !percentOnly && is < was, limited && !percentOnly && is > was);
  const changes: LocalChange[] = [];
  if (!isSamePhase(before.phase, after.phase, nowMicros)) {
    const [old, now] = [describePhase(before.phase, nowMicros), describePhase(after.phase, nowMicros)];
    changes.push(shift('phase', effect, old, now, after.shadowMode ? 'shadow_mode is on' : ''));
  }
  if (before.shadowMode !== after.shadowMode) {
    changes.push(shift('shadow_mode', effect, onOff(before.shadowMode), onOff(after.shadowMode)));
  }
  const [wasSoft, isSoft] = [before.onOver !== undefined, after.onOver !== undefined];
  if (wasSoft !== isSoft) changes.push(shift('on_over', effect, softOrHard(wasSoft), softOrHard(isSoft)));
  return changes;
}

function softOrHard(isSoft: boolean): string {
  return isSoft ? 'allow: true' : 'absent';
}

/** Reports a changed phase of limits that are not part of a rule. `reason` names these limits. */
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

function percentChange(before: Rule, after: Rule, was: boolean, is: boolean): LocalChange | undefined {
  const [old, now] = [before.enforcePercent, after.enforcePercent];
  if (old === now) return undefined;
  return shift('enforce_percent', effectOf(now > old && is, now < old && was), `${old}`, `${now}`);
}

function quotaChange(before: Rule, after: Rule, enforced: boolean): LocalChange | undefined {
  if (before.quotaMode === after.quotaMode) return undefined;
  const denies = after.quotaMode
    ? 'the rule now denies only together with all other quotas'
    : 'the rule now denies on its own';
  const reason = after.onOver === undefined ? denies : '';
  const effect = effectOf(enforced && before.quotaMode, enforced && after.quotaMode);
  return shift('quota_mode', effect, onOff(before.quotaMode), onOff(after.quotaMode), reason);
}

function nameChange(before: Rule, after: Rule, context: DiffContext): LocalChange | undefined {
  if (before.name === after.name) return undefined;
  const was = before.name !== '' && context.replacedBefore.has(before.name);
  const is = after.name !== '' && context.replacedAfter.has(after.name);
  const enforced = isEnforced(after, context.nowMicros);
  const reasons = [
    was && !is ? 'no rule replaces this rule under the new name' : '',
    !was && is ? 'other rules replace this rule under the new name' : '',
    before.statSuffix === after.statSuffix ? '' : "the rule's bucket starts over",
  ];
  const reason = reasons.filter((text) => text !== '').join(', ');
  return shift(
    'name',
    effectOf(was && !is && enforced, is && !was),
    quoted(before.name),
    quoted(after.name),
    reason,
  );
}

function replacesChange(before: Rule, after: Rule, context: DiffContext): LocalChange | undefined {
  const gone = before.replaces.filter((name) => !after.replaces.includes(name));
  const added = after.replaces.filter((name) => !before.replaces.includes(name));
  if (gone.length + added.length === 0) return undefined;
  const names = (rule: Rule): string => rule.replaces.map(quoted).join(', ') || 'none';
  const held = context.quotasAfter > 0 ? added.filter((name) => context.suppressingBefore.has(name)) : [];
  const reasons = [
    gone.length > 0 ? `now also applied: ${gone.map(quoted).join(', ')}` : '',
    held.length > 0 ? `other quotas can now deny without ${held.map(quoted).join(', ')}` : '',
  ];
  const reason = reasons.filter((text) => text !== '').join(', ');
  const tightens = held.length > 0 || gone.some((name) => context.denyingAfter.has(name));
  const loosens = added.some((name) => context.denyingBefore.has(name));
  return shift('replaces', effectOf(tightens, loosens), names(before), names(after), reason);
}

/** Reports a changed position. Unnamed limits of a list are identified by their position, single limits are not. */
function placeChange(before: Rule, after: Rule): LocalChange | undefined {
  if (before.statSuffix === after.statSuffix || before.name !== after.name) return undefined;
  const place = ({ statSuffix }: Rule): string =>
    statSuffix === '' ? 'alone' : `item ${statSuffix.slice(1)} of a list`;
  return shift('place', 'changes', place(before), place(after), "the rule's bucket starts over");
}

/**
 * Compares the failure policies: `deny` allows least and `allow` most. `error` (Envoy decides) and `local` can each
 * deny requests that the other allows.
 */
function failureChange(before: Rule, after: Rule, enforced: boolean): LocalChange | undefined {
  const [was, is] = [before.onStoreFailure, after.onStoreFailure];
  if (isSameFailurePolicy(was, is)) return undefined;
  const counts = (policy: StoreFailurePolicy): boolean => enforced || policy === 'error';
  const effect =
    after.rate === undefined
      ? 'changes'
      : ((enforced ? shareEffect(was, is) : undefined) ??
        effectOf(is !== 'allow' && was !== 'deny' && counts(is), is === 'allow' || counts(was)));
  return shift(
    'on_store_failure',
    effect,
    describeFailurePolicy(was),
    describeFailurePolicy(is),
    'applies while the store is unavailable',
  );
}

/**
 * Returns the changes of answers that describe the rule. Changes of the domain's defaults are reported for the domain.
 * Answers do not describe rules without a limit.
 */
function answerChanges(
  before: Rule,
  after: Rule,
  context: DiffContext,
): readonly (LocalChange | undefined)[] {
  if (before.rate === undefined && after.rate === undefined) return [];
  const { domainBefore, domainAfter } = context;
  return [
    headersChange('response_headers', 'responseHeaders', before, after, context),
    headersChange('request_headers', 'requestHeaders', before, after, context),
    deniedChange(before.deniedResponse, after.deniedResponse, domainBefore, domainAfter),
  ];
}

function headersChange(
  key: string,
  field: HeadersField,
  { [field]: before }: Rule,
  { [field]: after }: Rule,
  { domainBefore, domainAfter }: DiffContext,
): LocalChange | undefined {
  if (before === undefined && after === undefined) return undefined;
  const [old, now] = [before ?? domainBefore[field], after ?? domainAfter[field]];
  if (describeHeaders(old) === describeHeaders(now)) return undefined;
  const text = (own: HeaderFamilies | undefined): string =>
    own === undefined ? "the domain's value" : describeHeaders(own);
  return shift(key, 'changes', text(before), text(after));
}

function deniedChange(
  before: DeniedResponse | undefined,
  after: DeniedResponse | undefined,
  domainBefore: AnswerSettings,
  domainAfter: AnswerSettings,
): LocalChange | undefined {
  if (before === undefined && after === undefined) return undefined;
  const [old, now] = [before ?? domainBefore.deniedResponse, after ?? domainAfter.deniedResponse].map(bodyOf);
  return isSame(old, now) ? undefined : plain('denied_response', before, after);
}

/** Returns undefined for a response without a body, because its content type is not sent either. */
export function bodyOf(denied: DeniedResponse | undefined): DeniedResponse | undefined {
  return denied?.preset === 'none' && denied.body === '' ? undefined : denied;
}

/** Reports a changed `on_unmatched`. Unmatched requests are allowed in both modes, and only the log differs. */
export function unmatchedChange(
  before: { readonly onUnmatched: UnmatchedMode },
  after: { readonly onUnmatched: UnmatchedMode },
): LocalChange | undefined {
  const [was, is] = [before.onUnmatched, after.onUnmatched];
  return was === is ? undefined : shift('on_unmatched', 'changes', was, is, 'affects only the log');
}

/** Returns `on` or `off`. */
export function onOff(value: boolean): string {
  return value ? 'on' : 'off';
}

/** Returns the name of a rule in quotes. */
function quoted(name: string): string {
  return name === '' ? 'none' : `"${name}"`;
}
