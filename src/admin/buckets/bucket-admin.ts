import type { Entry } from '../../limiter/entry.js';
import type { CompiledPolicy, PolicySet } from '../../policy/compiled-policy.js';
import { NO_SECRETS, redactEntries } from '../../policy/redact.js';
import { shown } from '../../runtime/texts.js';
import type { Logger } from '../../telemetry/logger.js';
import type { AdminCounter, AdminResult } from '../../telemetry/metrics.js';
import type { AdminAnswer, AdminCaller, AdminService } from '../admin-access.js';
import { changeBuckets, releaseHolds } from './bucket-changes.js';
import { findLimits } from './found-limits.js';
import {
  BUCKET_ACTIONS,
  type BucketAnswer,
  type BucketFailure,
  type BucketQuestion,
  changesSomething,
  READING_ACTIONS,
} from './messages.js';
import {
  domainNames,
  type QuestionContext,
  QuestionFailure,
  readQuestion,
  unknownDomain,
} from './read-question.js';
import { showBuckets } from './shown-buckets.js';

/** Maximum number of questions that are answered at the same time. Further ones are refused. */
export const MAX_QUESTIONS = 32;

export interface BucketAdminOptions extends QuestionContext {
  policies(): PolicySet | undefined;
  readonly log: Logger;
  readonly count: AdminCounter;
}

/** Answers the questions of `/buckets` in the process that has the store. */
export class BucketAdmin {
  readonly #options: BucketAdminOptions;
  #running = 0;

  constructor(options: BucketAdminOptions) {
    this.#options = options;
  }

  /** Validates and answers a question. Never rejects. */
  async answer(question: unknown, caller: AdminCaller): Promise<AdminAnswer> {
    const { count, log, policies } = this.#options;
    const read = readQuestion(question);
    if (typeof read === 'string') {
      count('unknown', 'refused');
      return { status: 400, body: { error: read } };
    }
    const answered = await this.#answer(read);
    const result = resultOf(read, answered);
    count(read.action, result);
    if (!READING_ACTIONS.has(read.action)) auditChange(log, read, caller, answered, result, policies());
    if (!(answered instanceof QuestionFailure)) return { status: 200, body: answered };
    const { status, message: error, mayHaveChanged } = answered;
    const body: BucketFailure = { error, ...(mayHaveChanged && { maybe_done: true }) };
    return { status, body };
  }

  async #answer(question: BucketQuestion): Promise<BucketAnswer | QuestionFailure> {
    if (this.#running >= MAX_QUESTIONS) {
      const undone = changesSomething(question) ? ', so nothing was changed' : '';
      return new QuestionFailure(503, `too many requests at once${undone}; try again`);
    }
    this.#running++;
    try {
      return await this.#do(question);
    } catch (error) {
      if (error instanceof QuestionFailure) return error;
      this.#options.log.error({ err: error }, 'unexpected error');
      const mayHaveChanged = changesSomething(question);
      const unknown = mayHaveChanged ? ', and the server may have made the change' : '';
      return new QuestionFailure(500, `internal error${unknown}; see the server log`, mayHaveChanged);
    } finally {
      this.#running--;
    }
  }

  async #do(question: BucketQuestion): Promise<BucketAnswer> {
    const context = this.#options;
    const policies = context.policies();
    if (policies === undefined) throw new QuestionFailure(503, 'no policy is in effect yet; try again');
    const policy = policyFor(policies, question.domain);
    const asked = { question, policy, found: findLimits(context, policy, question) };
    switch (question.action) {
      case 'show':
        return showBuckets(asked, context);
      case 'reset':
      case 'grant':
        return changeBuckets(asked, context);
      case 'release':
        return releaseHolds(asked, context);
    }
  }
}

function resultOf(
  { dry_run: dryRun }: BucketQuestion,
  answered: BucketAnswer | QuestionFailure,
): AdminResult {
  if (answered instanceof QuestionFailure) return answered.status >= 500 ? 'failed' : 'refused';
  if (dryRun === true) return 'dry_run';
  // The result of the change is unknown for some of the buckets.
  return answered.buckets.some(
    ({ before, now, note }) => before === undefined && now === undefined && note,
  ) && !READING_ACTIONS.has(answered.action)
    ? 'failed'
    : 'ok';
}

function policyFor({ domains }: PolicySet, domain: string | undefined): CompiledPolicy {
  const [only, ...others] = domains.keys();
  if (only === undefined)
    throw new QuestionFailure(400, 'no policy in effect has a domain; add a policy to the server');
  const policy = domain === undefined && others.length > 0 ? undefined : domains.get(domain ?? only);
  if (policy !== undefined) return policy;
  const wrong =
    domain === undefined
      ? `the server has several domains; specify one of ${domainNames(domains)}`
      : unknownDomain(domains, domain);
  throw new QuestionFailure(400, wrong);
}

/** Maximum number of buckets in a log line. Further ones are counted. */
const MAX_BUCKETS = 50;
/** Maximum number of characters of a value in a log line. */
const MAX_VALUE = 256;

/** Logs a change: the caller, the action, the buckets, and the values before and after. */
function auditChange(
  log: Logger,
  question: BucketQuestion,
  { by, peer }: AdminCaller,
  answered: BucketAnswer | QuestionFailure,
  result: AdminResult,
  policies: PolicySet | undefined,
): void {
  const { action, entries, dry_run: dryRun = false, ...asked } = question;
  const told =
    answered instanceof QuestionFailure
      ? { entries: shownEntries(redactedByAll(entries, policies)), error: answered.message }
      : doneFields(answered);
  log.info({ action, by, peer, result, ...(dryRun && { dry_run: true }), ...asked, ...told }, MESSAGE);
}

function doneFields(answered: BucketAnswer): object {
  const { domain, buckets, notes } = answered;
  const more = buckets.length - MAX_BUCKETS;
  return {
    domain,
    entries: shownEntries(answered.entries),
    ...(buckets.length > 0 && {
      buckets: buckets.slice(0, MAX_BUCKETS).map(({ rule, before, now }) => ({ rule, before, after: now })),
    }),
    ...(more > 0 && { more_buckets: more }),
    notes,
  };
}

const MESSAGE = 'an operator requested a change';

function shownEntries(entries: readonly Entry[]): readonly Entry[] {
  return entries.map(({ key, value }) => ({ key: shown(key, MAX_VALUE), value: shown(value, MAX_VALUE) }));
}

/** Redacts entries of a question whose domain may not exist, with the secret keys of all domains. */
function redactedByAll(entries: readonly Entry[], policies: PolicySet | undefined): readonly Entry[] {
  // All domains share their secret keys.
  const [policy] = policies?.domains.values() ?? [];
  return redactEntries(entries, policy?.secretKeys ?? NO_SECRETS);
}

/** Validates and answers a question, in this process or in a worker. */
export type Administer = (question: unknown, caller: AdminCaller) => Promise<AdminAnswer>;

/** The service of `/buckets` on the debug port. */
export function bucketsService(administer: Administer): AdminService {
  return {
    path: '/buckets',
    help: 'shows and changes buckets; see weir bucket --help',
    rightFor(question) {
      const { action } = Object(question) as { action?: unknown };
      const known = BUCKET_ACTIONS.find((one) => one === action);
      // An invalid question is refused for every caller.
      return known === undefined || READING_ACTIONS.has(known) ? 'read' : 'write';
    },
    answer: (question, caller) => administer(question, caller),
  };
}
