import type { Descriptor } from '../../codec/messages.js';
import type { Enforcement } from '../../limiter/bucket-store.js';
import type { Entry } from '../../limiter/entry.js';
import type { Rate } from '../../limiter/rate.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { describePlanValues } from '../../policy/describe.js';
import { describeCustomerPlan, planOfCustomer } from '../../policy/plans/plan-nodes.js';
import { dependsOnRow, isBlocked, unblockedRule } from '../../policy/plans/plan-rules.js';
import type { Match } from '../../policy/policy.js';
import {
  MAX_PAIRS,
  matchedEntries,
  type NodeEntry,
  type PossibleEnd,
  possibleEnds,
} from '../../policy/possible-ends.js';
import { isSecretKey, redactEntries, redacted } from '../../policy/redact.js';
import { phaseAt, type Rule } from '../../policy/rule.js';
import { plural, shown } from '../../runtime/texts.js';
import { CALLER_WITHOUT_DEADLINE } from '../../service/caller.js';
import { applyReplacesAndQuotas } from '../../service/enforcement.js';
import { matchAndPlan, matchRules, OVERRIDE_UNITS, takeWithoutBlock } from '../../service/match.js';
import { type DescriptorState, type MatchedTake, RequestContext } from '../../service/request-context.js';
import type { BucketAction, BucketQuestion } from './messages.js';
import { type OverrideLimit, type QuestionContext, QuestionFailure, readOverride } from './read-question.js';

/** Maximum number of limits that an answer lists. Further ones are counted. */
export const MAX_LIMITS_LISTED = 200;

/** Maximum number of characters of a value in the description of a limit, which repeats it for each limit. */
const MAX_VALUE = 256;

/** Action of a question, and the context in which its descriptor is planned, as in a request. */
interface FindSource extends Pick<QuestionContext, 'answers' | 'maxLimits' | 'matchWork'> {
  readonly action: BucketAction;
  readonly policy: CompiledPolicy;
  readonly wallMicros: number;
}

/** A limit that applies to the entries of a question, or could apply to them. */
export interface FoundLimit {
  readonly rulePath: string;
  readonly name: string;
  /** For `show`, the limit of requests. Other actions change the bucket of a blocked customer as without the block. */
  readonly rate: Rate;
  /** The fields that come from a plan, in words; '' without any. */
  readonly planned: string;
  readonly enforcement: Enforcement;
  /** Entries of the bucket, with secrets redacted. */
  readonly entries: readonly Entry[];
  /** Take from the bucket, without the block of a customer. Undefined if an unknown value leaves many buckets. */
  readonly take: MatchedTake | undefined;
  /** Keys whose values are needed to find the bucket. */
  readonly missing: readonly string[];
  /** Whether its takes place holds. */
  readonly hasHolds: boolean;
  /** Sentence for the operator, or ''. */
  readonly note: string;
}

/** Limits for the entries of a question. */
export interface FoundLimits {
  readonly meets: 'descriptor' | 'part' | 'nothing';
  /** Entries after `derive`, with secrets. */
  readonly entries: readonly Entry[];
  readonly limits: readonly FoundLimit[];
  readonly more: number;
  readonly notes: readonly string[];
}

/**
 * Finds the limits that apply to a descriptor, or that could apply to descriptors with its entries. Throws a
 * {@link QuestionFailure} if the question cannot be answered.
 */
export function findLimits(
  { clock, answers, maxLimits, matchWork }: QuestionContext,
  policy: CompiledPolicy,
  { action, entries, limit }: BucketQuestion,
): FoundLimits {
  const source: FindSource = {
    action,
    policy,
    wallMicros: clock.wallMicros(),
    answers,
    maxLimits,
    matchWork,
  };
  const override = readOverride(limit);
  const met = matchingLimits(source, entries);
  const overridden = override && matchingLimits(source, entries, override);
  const isMet = met.match.rules.length > 0;
  const isListed = !isMet && overridden === undefined;
  const possible = findPossible(source, met.match.entries, isListed ? MAX_LIMITS_LISTED : 0);
  if (isListed) {
    if (possible === undefined) throw new QuestionFailure(400, TOO_MANY_ENTRIES);
    return possible;
  }
  const others = (possible?.more ?? 0) - countingOf(action, met.match.rules);
  const whole = redactEntries(met.match.entries, policy.secretKeys).map(({ key, value }) => ({
    key,
    value: shown(value, MAX_VALUE),
  }));
  const onWay = isMet ? matchedEntries(policy, met.match.entries) : [];
  // A descriptor may lack the entry that names the class of its caller.
  const isWhole = onWay.length === met.match.entries.length;
  const below = isWhole ? onWay.map((entry) => shownEntry(entry, policy)) : whole;
  const limits = [
    ...met.limits.map((limit) => limitOf(limit, source, below)),
    ...(overridden?.limits ?? []).map((limit) => limitOf(limit, source, whole)),
  ];
  return {
    meets: 'descriptor',
    entries: met.match.entries,
    limits,
    more: 0,
    notes: [
      ...notesOn(met),
      ...(met.match.rules.some(dependsOnRow) ? planNotes(source, met.match.entries) : []),
      ...(overridden === undefined ? [] : [OVERRIDE_NOTE]),
      ...(others > 0
        ? [
            `${plural(others, 'more limit applies', 'more limits apply')} to descriptors with additional entries.`,
          ]
        : []),
    ],
  };
}

const TOO_MANY_ENTRIES =
  'no limit applies to exactly these entries, and weir finds limits with additional entries only for up to ' +
  `${MAX_PAIRS} entries; use fewer entries`;

function planNotes({ policy, wallMicros }: FindSource, entries: readonly Entry[]): readonly string[] {
  const { plans } = policy;
  if (plans !== undefined && !entries.some(({ key }) => key === plans.by)) {
    return [`Values from plans are those of customers without a row. Add a value for ${plans.by}.`];
  }
  const plan = planOfCustomer(plans, entries);
  return plan === undefined ? [] : [`Plan: ${describeCustomerPlan(plan, wallMicros)}.`];
}

const OVERRIDE_NOTE =
  'If a request contains an override, only the override applies. The bucket of the override is listed ' +
  'with the rule name override.';

function notesOn({ match, limits, unlimited }: MatchingLimits): readonly string[] {
  if (unlimited) return ['The rule is unlimited: weir counts no hits and denies no requests.'];
  const replaced = match.rules.length - limits.length;
  return replaced > 0 ? ['Limits that another limit replaces are not listed.'] : [];
}

function limitOf(
  { take, bucket }: MatchingLimit,
  { action, wallMicros }: FindSource,
  entries: readonly Entry[],
): FoundLimit {
  const { rulePath, name, enforcement } = take;
  // A class takes from the bucket of all classes.
  const { rate, rule } = action === 'show' && take.rule?.shared === undefined ? take : bucket;
  return {
    rulePath,
    name,
    rate,
    planned: planWords(rule),
    enforcement,
    entries,
    take: bucket,
    missing: [],
    hasHolds: bucket.rule?.hold !== undefined,
    note: [noteOn(take.rule, wallMicros), classNote(take.rule)].filter((text) => text !== '').join(' '),
  };
}

const BLOCKED_NOTE = 'The customer is blocked, so the limit allows no requests.';

/** Returns what the class of the entries leaves to others; '' for a limit without classes. */
function classNote(rule: Rule | undefined): string {
  const [whole, part] = [rule?.shared?.rate?.reportedLimit, rule?.rate?.reportedLimit];
  if (rule === undefined || whole === undefined || part === undefined) return '';
  return `The class ${rule.className} can use ${part} of ${whole}, and leaves ${whole - part} to other classes.`;
}

function planWords(rule: Rule | undefined): string {
  return rule === undefined || isBlocked(rule) ? '' : describePlanValues(rule.plan);
}

function noteOn(rule: Rule | undefined, wallMicros: number): string {
  if (rule === undefined) return '';
  if (rule.shadowMode) return 'The limit is in shadow mode, so it denies no requests.';
  const phase = phaseAt(rule.phase, wallMicros);
  if (rule.onOver !== undefined) {
    const marks = phase === 'active' ? '' : `, without marks because the limit is in the ${phase} phase`;
    return `The limit is soft: requests over it pass${marks}.`;
  }
  // The last limit of a chain decides about its phase.
  if (rule.nextLimit !== '') {
    return isBlocked(rule) ? BLOCKED_NOTE : `Requests over the limit take from "${rule.nextLimit}" instead.`;
  }
  if (phase !== 'active') return `The limit is in the ${phase} phase, so it denies no requests.`;
  if (isBlocked(rule)) return BLOCKED_NOTE;
  return rule.enforcePercent < 100 ? `weir enforces ${rule.enforcePercent}% of this limit's denials.` : '';
}

function countingOf(action: BucketAction, rules: readonly Rule[]): number {
  let counting = 0;
  for (const rule of rules) {
    const { rate, hold } = unblockedRule(rule) ?? rule;
    if (rate !== undefined && concerns(action, { rate, hasHolds: hold !== undefined })) counting++;
  }
  return counting;
}

function concerns(action: BucketAction, { rate, hasHolds }: Pick<FoundLimit, 'rate' | 'hasHolds'>): boolean {
  if (action === 'release') return hasHolds;
  return action === 'show' || rate.kind !== 'concurrency';
}

/**
 * Finds the limits of descriptors that have these entries and any others. Lists up to `most` limits. Returns undefined
 * for too many entries.
 */
function findPossible(source: FindSource, entries: readonly Entry[], most: number): FoundLimits | undefined {
  const pairs = entries.filter((entry, at) => entries.findIndex((other) => isSame(entry, other)) === at);
  if (pairs.length > MAX_PAIRS) return undefined;
  const known: FoundLimit[] = [];
  const others: FoundLimit[] = [];
  let more = 0;
  let unlimited = 0;
  let usesPlan = false;
  const isComplete = possibleEnds(source.policy, pairs, (end) => {
    const rules = rulesOfEnd(source.policy, end);
    usesPlan ||= end.node.usesPlan || rules.some(dependsOnRow);
    const list = end.isNamed ? known : others;
    if (rules.every(({ rate }) => rate === undefined)) unlimited++;
    else if (list.length >= most) more += countingOf(source.action, rules);
    else list.push(...limitsOfEnd(source, end));
  });
  const limits = [...known, ...others];
  const notes: string[] = [];
  if (unlimited > 0) notes.push(`Unlimited rules that are not listed: ${unlimited}.`);
  if (usesPlan) notes.push(...planNotes(source, entries));
  if (!isComplete)
    notes.push('The policy is too large to find all limits that could apply. Add more entries.');
  return {
    meets: limits.length + unlimited === 0 ? 'nothing' : 'part',
    entries,
    limits: limits.slice(0, most),
    more: more + limits.slice(most).filter((limit) => concerns(source.action, limit)).length,
    notes,
  };
}

function isSame(one: Entry, other: Entry): boolean {
  return one.key === other.key && one.value === other.value;
}

function matchOfEnd(policy: CompiledPolicy, { node, entries }: PossibleEnd): Match {
  return policy.matchAt(
    node,
    entries.map(({ key, value = '' }) => ({ key, value })),
  );
}

/** Returns the rules of a node for the customer, as far as the customer is known. */
function rulesOfEnd(policy: CompiledPolicy, end: PossibleEnd): readonly Rule[] {
  return end.node.hasCustomer ? matchOfEnd(policy, end).rules : end.node.rules;
}

function limitsOfEnd(source: FindSource, end: PossibleEnd): readonly FoundLimit[] {
  const { isNamed, entries, unknownKeys: missing } = end;
  const below = entries.map((entry) => shownEntry(entry, source.policy));
  return limitsAt(source, matchOfEnd(source.policy, end)).limits.map((limit) => {
    const found = limitOf(limit, source, below);
    if (isNamed) return found;
    const note = `To see the bucket, add a value for ${missing.join(', ')}.`;
    return { ...found, take: undefined, missing, note };
  });
}

/** Returns the value of an entry, or the value in the policy, or '' if any value matches. */
function shownEntry({ key, value, pattern, shared }: NodeEntry, policy: CompiledPolicy): Entry {
  if (value === undefined || shared) return { key, value: pattern };
  if (!isSecretKey(key, policy.secretKeys)) return { key, value: shown(value, MAX_VALUE) };
  return { key, value: redacted(value) };
}

interface MatchingLimit {
  readonly take: MatchedTake;
  /** The take from the limit's bucket. It differs from `take` if the customer is blocked. */
  readonly bucket: MatchedTake;
}

interface MatchingLimits {
  readonly match: Match;
  /** In the order of the policy file. */
  readonly limits: readonly MatchingLimit[];
  readonly unlimited: boolean;
}

function contextOf(
  { policy, wallMicros, answers, maxLimits, matchWork }: FindSource,
  entries: readonly Entry[],
  override?: OverrideLimit,
): RequestContext {
  const limit = override && {
    requestsPerUnit: override.requestsPerUnit,
    unit: Number(Object.keys(OVERRIDE_UNITS).find((unit) => OVERRIDE_UNITS[Number(unit)] === override.unit)),
  };
  const descriptor: Descriptor = { entries, limit, hitsAddend: 0, isNegativeHits: false };
  const request = { domain: policy.domain, descriptors: [descriptor], hitsAddend: 0 };
  // Rules with `enforce_percent` are shown as enforced.
  const clock = { wallMicros: () => wallMicros };
  const options = { answers, maxLimits, matchWork, clock, random: () => 0 };
  return new RequestContext(options, request, policy, CALLER_WITHOUT_DEADLINE, 0);
}

function metBy(context: RequestContext): MatchingLimits {
  const { match, takes, unlimited } = context.states[0] as DescriptorState;
  const descriptor = context.request.descriptors[0] as Descriptor;
  const limits = takes.map((take) => ({
    take,
    bucket: takeWithoutBlock(context, descriptor, match, take),
  }));
  return { match, limits, unlimited };
}

/**
 * Returns the limits of a request with one descriptor, from the same code that decides requests. `override` is a limit
 * in the request. Throws if weir would not decide such a request.
 */
function matchingLimits(
  source: FindSource,
  entries: readonly Entry[],
  override?: OverrideLimit,
): MatchingLimits {
  const context = contextOf(source, entries, override);
  const exceeded = matchAndPlan(context);
  if (exceeded === undefined) return metBy(context);
  throw new QuestionFailure(
    400,
    `weir does not decide requests with this descriptor (${exceeded}); see docs/reference/bounds.md`,
  );
}

function limitsAt(source: FindSource, match: Match): MatchingLimits {
  const context = contextOf(source, match.entries);
  const [descriptor] = context.request.descriptors as readonly [Descriptor];
  context.states = [matchRules(context, descriptor, match)];
  applyReplacesAndQuotas(context);
  return metBy(context);
}
