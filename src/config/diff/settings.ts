import {
  answerOf,
  describeFailurePolicy,
  type StoreFailurePolicy,
  shareOf,
} from '../../limiter/failure-policy.js';
import { describeHeaders, describePhase, describeRequestHeaders } from '../../policy/describe.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { DeniedResponse, HeaderFamilies, PhaseSchedule } from '../../policy/rule.js';
import { isSame, type LocalChange, shift } from './change.js';

/** What the comparison of single settings needs to know about both policies. */
export interface DiffContext {
  readonly domainBefore: DomainPolicy;
  readonly domainAfter: DomainPolicy;
  /** Wall clock. Phases that have ended are not compared. */
  readonly nowMicros: number;
  /** Names that a rule of either policy lists in `replaces`. */
  readonly replaced: ReadonlySet<string>;
  /** Whether either policy has quotas. They deny only together. */
  readonly hasQuotas: boolean;
  /** Whether the rows of plans are in Redis, so that any customer may have any plan. */
  readonly hasUnknownRows: boolean;
  /** Whether a row of plans may block a customer. */
  readonly mayBlock: boolean;
}

/** A setting of a rule, a node or a domain. It needs a text, a value or both. */
export interface Setting<Subject> {
  readonly name: string;
  /** The value as a change shows it. Absent for values that are too long to show. */
  readonly text?: (subject: Subject, context: DiffContext) => string;
  /** What is compared if not the text. */
  readonly value?: (subject: Subject, context: DiffContext) => unknown;
  /** Tells whether another value may deny requests that the old value allows. Absent if no value denies requests. */
  readonly isStricter?: (before: Subject, after: Subject, context: DiffContext) => boolean;
  /** Tells whether the setting can deny requests here; absent if it always can. */
  readonly counts?: (subject: Subject, context: DiffContext) => boolean;
  readonly reason?: (after: Subject) => string;
}

/** Returns one change per setting that differs. */
export function settingChanges<Subject>(
  settings: readonly Setting<Subject>[],
  before: Subject,
  after: Subject,
  context: DiffContext,
): readonly LocalChange[] {
  return settings.flatMap(({ name, text, value = text, isStricter, counts, reason }) => {
    const [was, is] = [before, after].map((subject) => value?.(subject, context));
    if (isSame(was, is)) return [];
    const tightens = isStricter?.(before, after, context) === true && counts?.(after, context) !== false;
    const loosens = isStricter?.(after, before, context) === true && counts?.(before, context) !== false;
    const effect = tightens ? 'tightens' : loosens ? 'loosens' : 'changes';
    const because = reason?.(after) ?? '';
    if (text !== undefined)
      return [shift(name, effect, text(before, context), text(after, context), because)];
    const what = was === undefined ? 'is set' : is === undefined ? 'is no longer set' : 'differs';
    return [{ setting: name, effect, tightens, text: `${name} ${what}${because && `; ${because}`}` }];
  });
}

export const onOff = (value: boolean): string => (value ? 'on' : 'off');

interface Phased {
  readonly phase: PhaseSchedule;
}

/** Returns the time from which a phase denies requests, at least the current time; Infinity if it never does. */
export function activeAt({ phase }: Phased, { nowMicros }: DiffContext): number {
  return Math.max(phase.activeAtMicros, nowMicros);
}

export const phaseSetting = {
  name: 'phase',
  text: ({ phase }: Phased, { nowMicros }: DiffContext) => describePhase(phase, nowMicros),
  // Times in the past are equal, and a grace period that starts too late never takes effect.
  value: (subject: Phased, context: DiffContext) => {
    const active = activeAt(subject, context);
    const grace = Math.max(subject.phase.gracePeriodAtMicros, context.nowMicros);
    return [grace >= active ? '' : `${grace}`, `${active}`];
  },
  isStricter: (before: Phased, after: Phased, context: DiffContext) =>
    activeAt(after, context) < activeAt(before, context),
} satisfies Setting<Phased>;

interface Failing {
  readonly onStoreFailure: StoreFailurePolicy;
}

export const failureSetting = {
  name: 'on_store_failure',
  text: ({ onStoreFailure }: Failing) => describeFailurePolicy(onStoreFailure),
  value: ({ onStoreFailure }: Failing) => [answerOf(onStoreFailure), shareOf(onStoreFailure)],
  // `deny` allows least and `allow` most. `error`, with which Envoy decides, and `local` may each deny more.
  isStricter: ({ onStoreFailure: was }: Failing, { onStoreFailure: is }: Failing) =>
    is !== 'allow' &&
    was !== 'deny' &&
    (answerOf(was) !== 'local' || answerOf(is) !== 'local' || shareOf(is) < shareOf(was)),
} satisfies Setting<Failing>;

export const unmatchedSetting = {
  name: 'on_unmatched',
  text: ({ onUnmatched }: { readonly onUnmatched: string }) => onUnmatched,
  reason: () => 'affects only the log',
} satisfies Setting<{ readonly onUnmatched: string }>;

interface Answering {
  readonly responseHeaders: HeaderFamilies | undefined;
  readonly requestHeaders: HeaderFamilies | undefined;
  readonly deniedResponse: DeniedResponse | undefined;
}

export const ANSWER_SETTINGS: readonly Setting<Answering>[] = [
  { name: 'response_headers', text: ({ responseHeaders }) => describeHeaders(responseHeaders) },
  { name: 'request_headers', text: ({ requestHeaders }) => describeRequestHeaders(requestHeaders) },
  {
    name: 'denied_response',
    // The content type of a response without a body is not sent.
    value: ({ deniedResponse }) =>
      deniedResponse?.preset === 'none' && deniedResponse.body === '' ? undefined : deniedResponse,
  },
];
