import type { Entry } from '../../limiter/entry.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { NO_SECRETS, redactEntries } from '../../policy/redact.js';
import { shown } from '../../shown-text.js';
import type { Logger } from '../../telemetry/logger.js';
import type { AdminResult } from '../../telemetry/metrics.js';
import type { AdminCaller } from '../admin-access.js';
import type { BucketAnswer, BucketQuestion } from './messages.js';
import { QuestionFailure, type QuestionResult } from './question-context.js';

/** Maximum number of buckets in a log line. Further ones are counted. */
const MAX_BUCKETS = 50;
/** Maximum number of characters of a value in a log line. */
const MAX_VALUE = 256;

/** Logs a change: the caller, the action, the buckets, and the values before and after. */
export function auditChange(
  log: Logger,
  question: BucketQuestion,
  { by, peer }: AdminCaller,
  answered: QuestionResult,
  result: AdminResult,
  policies: PolicySet | undefined,
): void {
  const { action, entries, dry_run: dryRun = false, ...asked } = question;
  const told =
    answered instanceof QuestionFailure
      ? { entries: shownEntries(redactedByAll(entries, policies)), error: answered.error }
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
