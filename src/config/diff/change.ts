import {
  answerOf,
  describeFailurePolicy,
  type StoreFailurePolicy,
  shareOf,
} from '../../limiter/failure-policy.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { describeHeaders, describePhase, describeRequestHeaders } from '../../policy/describe.js';
import type { DeniedResponse, HeaderFamilies, PhaseSchedule } from '../../policy/rule.js';

/**
 * The effect of a change on requests. `tightens`: a request that was allowed before could now be denied, or weir cannot
 * compare the two. `loosens`: no such request exists, and a request that was denied before could now be allowed.
 * `changes`: neither; only answers, statistics or logs differ.
 */
export type Effect = 'tightens' | 'loosens' | 'appears' | 'vanishes' | 'changes';

/** A difference between two policies. Never contains a secret. */
export interface PolicyChange {
  readonly domain: string;
  /** Path as in {@link Rule.path}; '' if the change applies to the whole domain. */
  readonly path: string;
  /** The setting that differs: a key of the policy file, or `domain`, `descriptor`, `order` or `place`. */
  readonly setting: string;
  readonly effect: Effect;
  /** Whether a request that was allowed before could now be denied; also set for `appears` and `vanishes`. */
  readonly tightens: boolean;
  /** The old and the new value as text; absent if the setting did not exist before, or no longer exists. */
  readonly before?: string;
  readonly after?: string;
  /** The change as a sentence, without its path and effect. */
  readonly text: string;
}

/** A change to which the caller adds the domain and the path. */
export type LocalChange = Omit<PolicyChange, 'domain' | 'path'>;

/** Number of changes per effect. */
export interface DiffSummary {
  readonly tighten: number;
  readonly loosen: number;
  readonly appear: number;
  readonly vanish: number;
  readonly change: number;
  /** Number of `appears` and of `vanishes` changes that also tighten. */
  readonly tightenByAppearing: number;
  readonly tightenByVanishing: number;
}

/** Counts changes by effect. */
export function summaryOf(changes: readonly PolicyChange[]): DiffSummary {
  const count = (effect: Effect, tightening = false): number =>
    changes.filter((change) => change.effect === effect && (change.tightens || !tightening)).length;
  return {
    tighten: count('tightens'),
    loosen: count('loosens'),
    appear: count('appears'),
    vanish: count('vanishes'),
    change: count('changes'),
    tightenByAppearing: count('appears', true),
    tightenByVanishing: count('vanishes', true),
  };
}

/** Describes a change from one shown value to another. */
export function shift(
  setting: string,
  effect: Effect,
  before: string,
  after: string,
  reason = '',
): LocalChange {
  const because = reason === '' ? '' : `; ${reason}`;
  const text = `${setting === 'limit' ? '' : `${setting}: `}${before} becomes ${after}${because}`;
  return { setting, effect, tightens: effect === 'tightens', before, after, text };
}

/** Tells whether two values have the same JSON, in any order of keys. */
export function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one, sortedKeys) === JSON.stringify(other, sortedKeys);
}

function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** What the comparison of single settings needs to know about both policies. */
export interface DiffContext {
  readonly domainBefore: CompiledPolicy;
  readonly domainAfter: CompiledPolicy;
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
  readonly reason?: (after: Subject, before: Subject) => string;
}

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
    const because = reason?.(after, before) ?? '';
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
