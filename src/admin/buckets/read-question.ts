import type { BucketStore, StorageError, StorageFailure } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { HoldInspector } from '../../limiter/holds/hold-inspector.js';
import { MAX_UINT32 } from '../../limiter/rate-algorithm.js';
import { WINDOW_UNITS, type WindowUnit } from '../../limiter/window-unit.js';
import type { MatchWork } from '../../policy/match-work.js';
import { nearest } from '../../runtime/nearest-name.js';
import { REMOVED_COMMANDS, removedOption } from '../../runtime/removed-names.js';
import { listSome, shown } from '../../runtime/texts.js';
import type { AnswerOptions } from '../../service/answer/answer-options.js';
import type { HoldCounts } from '../../service/decision-observer.js';
import { decodeHoldId } from './holds/hold-id.js';
import { BUCKET_ACTIONS, type BucketAction, type BucketQuestion } from './messages.js';

/** Dependencies of the code that answers questions. */
export interface QuestionContext {
  readonly store: {
    readonly name: string;
    readonly buckets: BucketStore;
    readonly holds: HoldInspector;
    readonly timeoutMicros: number;
    /** Tells other processes about filled buckets, see {@link Store.announceFilled}. */
    announceFilled(): Promise<StorageError | undefined>;
    /** Returns the number of tokens of a bucket that this process has leased; undefined if other processes decide. */
    leasedTokens(key: string): number | undefined;
  };
  readonly clock: Clock;
  readonly answers: AnswerOptions;
  readonly maxLimits: number;
  readonly matchWork: MatchWork;
  /** Prefix of Redis keys; undefined if buckets are in memory. */
  readonly keyPrefix: string | undefined;
  readonly counts: Pick<HoldCounts, 'released'>;
}

/**
 * Ends a question with an HTTP status. The message is a sentence with the error and its remedy. `mayHaveChanged`: the
 * change may have been made.
 */
export class QuestionFailure extends Error {
  readonly status: number;
  readonly mayHaveChanged: boolean;

  constructor(status: number, message: string, mayHaveChanged = false) {
    super(message);
    this.status = status;
    this.mayHaveChanged = mayHaveChanged;
  }
}

const RESULT_UNKNOWN = 'so the result is unknown; check the bucket with weir bucket show';
const NOT_DONE = 'so nothing was changed; try again';
/** Failures after which the store may have executed a call that was sent. */
const MAYBE_DONE: ReadonlySet<StorageFailure> = new Set(['timeout', 'disconnected']);

export function mayHaveChanged({ reason, unsent }: StorageError): boolean {
  return !unsent && MAYBE_DONE.has(reason);
}

/** Returns a message about a failed change. If the change may have been made, it names the command to check it. */
export function changeFailed(error: StorageError): string {
  return `the store failed (${error.message}), ${mayHaveChanged(error) ? RESULT_UNKNOWN : NOT_DONE}`;
}

export function failedChange(error: StorageError): QuestionFailure {
  return new QuestionFailure(503, changeFailed(error), mayHaveChanged(error));
}

/** Maximum number of entries of a question. Operators do not need more. */
export const MAX_QUESTION_ENTRIES = 64;
/** Maximum number of UTF-16 code units of a domain, a rule or a key. Names in a policy may be long. */
const MAX_NAME = 8192;
/** Maximum number of characters of a quoted string in a message. */
const MAX_SHOWN = 60;
const ALL = BUCKET_ACTIONS;
const LEVELS: readonly BucketAction[] = ['show', 'reset', 'grant'];
const CHANGING: readonly BucketAction[] = ['reset', 'grant', 'release'];

/** Returns the error of a field's value, as a sentence without the field's name, or '' for a valid value. */
type Check = (value: unknown) => string;

const isTruth: Check = (value) => (typeof value === 'boolean' ? '' : 'must be true or false');

const isName: Check = (value) => {
  const bad = notText(value);
  if (bad !== '') return bad;
  if (value === '') return 'must not be empty';
  return (value as string).length <= MAX_NAME ? '' : `must have at most ${MAX_NAME} characters`;
};

/** Fields of a question, with the actions that accept them. */
const FIELDS: Readonly<Record<keyof BucketQuestion, readonly [readonly BucketAction[], Check]>> = {
  action: [ALL, () => ''],
  domain: [ALL, isName],
  entries: [ALL, wrongEntries],
  limit: [LEVELS, (value) => (readOverride(value) === undefined ? NO_OVERRIDE : '')],
  rule: [['reset', 'grant', 'release'], isName],
  tokens: [['grant'], (value) => (isTokens(value) ? '' : `must be a whole number from 1 to ${2 ** 53 - 1}`)],
  hold: [['release'], (value) => (isHoldId(value) ? '' : 'must be an ID of a hold, as show lists it')],
  all: [['release'], (value) => (value === true ? '' : 'must be true')],
  dry_run: [CHANGING, isTruth],
};

const NO_OVERRIDE = `must be a limit such as 100/minute; the valid units are ${WINDOW_UNITS.join(', ')}`;

/** Required fields of each action. */
const REQUIRED: Readonly<Record<BucketAction, readonly (keyof BucketQuestion)[]>> = {
  show: ['entries'],
  reset: ['entries'],
  grant: ['entries', 'tokens'],
  release: ['entries'],
};

export interface OverrideLimit {
  readonly requestsPerUnit: number;
  readonly unit: WindowUnit;
}

/** Validates a JSON value as a question. Returns a sentence if it is invalid. */
export function readQuestion(value: unknown): BucketQuestion | string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return 'the body must be a JSON object, such as {"action":"show","entries":[{"key":"tenant","value":"acme"}]}';
  }
  const { action } = value as { action?: unknown };
  if (!isAction(action)) {
    const removed = REMOVED_COMMANDS.get(`bucket ${action}`);
    if (removed !== undefined) return removed;
    const named =
      typeof action === 'string' ? `, not ${quotedText(action)}${suggestion(action, BUCKET_ACTIONS)}` : '';
    return `action must be one of ${BUCKET_ACTIONS.join(', ')}${named}`;
  }
  for (const [name, given] of Object.entries(value)) {
    const known = Object.hasOwn(FIELDS, name) ? FIELDS[name as keyof BucketQuestion] : undefined;
    if (known === undefined) {
      const text = `${quotedText(name)} is not a valid field`;
      return removedOption('bucket', name) ?? text + suggestion(name, Object.keys(FIELDS));
    }
    const [actions, check] = known;
    if (!actions.includes(action))
      return `${name} is valid only for ${actions.join(' and ')}, not for ${action}`;
    const wrong = check(given);
    if (wrong !== '') return `${name} ${wrong}`;
  }
  const question = value as BucketQuestion;
  const missing = REQUIRED[action].find((name) => question[name] === undefined);
  if (missing !== undefined) return `${action} needs ${missing}`;
  if (action === 'release' && (question.hold === undefined) === (question.all === undefined)) {
    return 'release requires either hold or all, but not both';
  }
  return question;
}

/** Parses the `limit` of a question. Returns undefined if it is invalid. */
export function readOverride(limit: unknown): OverrideLimit | undefined {
  const parts = typeof limit === 'string' ? /^(\d{1,10})\/([a-z]{1,10})$/.exec(limit) : null;
  const requestsPerUnit = Number(parts?.[1]);
  const unit = WINDOW_UNITS.find((one) => one === parts?.[2]);
  return unit === undefined || !(requestsPerUnit <= MAX_UINT32) ? undefined : { requestsPerUnit, unit };
}

function isAction(value: unknown): value is BucketAction {
  return BUCKET_ACTIONS.some((action) => action === value);
}

function isTokens(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

function isHoldId(value: unknown): boolean {
  return typeof value === 'string' && decodeHoldId(value) !== undefined;
}

function notText(value: unknown): string {
  if (typeof value !== 'string') return 'must be a string';
  // UTF-8 cannot encode a lone surrogate. It would become another text when it is hashed or stored.
  return value.isWellFormed() ? '' : 'must be a string that can be encoded in UTF-8';
}

function wrongEntries(value: unknown): string {
  if (!Array.isArray(value)) return 'must be a list, such as [{"key":"tenant","value":"acme"}]';
  if (value.length === 0) return 'must have at least one entry';
  if (value.length > MAX_QUESTION_ENTRIES) return `must have at most ${MAX_QUESTION_ENTRIES} entries`;
  for (const [at, entry] of value.entries()) {
    const wrong = wrongEntry(entry);
    if (wrong !== '') return `[${at}]${wrong}`;
  }
  return '';
}

function wrongEntry(entry: unknown): string {
  if (typeof entry !== 'object' || entry === null) return ' must be an object with key and value';
  const { key, value, ...others } = entry as { key?: unknown; value?: unknown };
  const [other] = Object.keys(others);
  if (other !== undefined) return ` has the field ${quotedText(other)}, but an entry has only key and value`;
  const wrong = isName(key);
  if (wrong !== '') return `.key ${wrong}`;
  const wrongValue = notText(value);
  return wrongValue === '' ? '' : `.value ${wrongValue}`;
}

export function quotedText(text: string): string {
  return JSON.stringify(shown(text, MAX_SHOWN));
}

/** Such as `; did you mean "show"?`; '' if no name is similar. */
function suggestion(name: string, candidates: Iterable<string>): string {
  const near = nearest(name, candidates);
  return near === undefined ? '' : `; did you mean ${quotedText(near)}?`;
}

/** Maximum number of domains in a message, and of domains that are compared to a misspelled one. */
const MAX_NAMED = 10;
const MAX_COMPARED = 100;

type Domains = ReadonlyMap<string, unknown>;

/** Returns a message that a domain is unknown, with a similar name and the known domains. */
export function unknownDomain(domains: Domains, domain: string): string {
  const missing = `no policy in effect has the domain ${quotedText(domain)}`;
  if (domains.size === 0) return `${missing}: no domain is loaded`;
  const near = nearest(domain, [...domains.keys()].slice(0, MAX_COMPARED));
  const suggestion = near === undefined ? '' : ` (did you mean ${quotedText(near)}?)`;
  return `${missing}${suggestion}; the loaded domains are ${domainNames(domains)}`;
}

export function domainNames(domains: Domains): string {
  return listSome([...domains.keys()], MAX_NAMED, quotedText);
}
