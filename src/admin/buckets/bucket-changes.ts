import { StorageError } from '../../limiter/bucket-store.js';
import { firstNames, quantity } from '../../quantity.js';
import type { BucketCall, BucketFound } from './bucket-calls.js';
import { levelOf, levelWith } from './bucket-level.js';
import { type FoundLimit, type FoundLimits, findLimits } from './found-limits.js';
import { releasedCount, releaseFrom, releaseNotes, shownRelease } from './holds/released-holds.js';
import { heldLimits } from './holds/shown-holds.js';
import type { BucketLevel, BucketQuestion, ShownBucket } from './messages.js';
import {
  answerTo,
  changeFailed,
  failedChange,
  mayHaveChanged,
  type PolicyQuestion,
  planSource,
  type QuestionContext,
  QuestionFailure,
  type QuestionResult,
} from './question-context.js';
import { quotedText } from './read-question.js';
import { failureOfAll, notAsked, sentence, shownLimit, storeUnread } from './shown-buckets.js';

/** Maximum number of rules in a message. */
const MAX_NAMED = 10;

/** A limit with a known bucket, and the operation on it. */
interface Change {
  readonly limit: FoundLimit;
  readonly call: BucketCall;
}

/**
 * Runs `reset` and `grant`: gives tokens back to every known bucket, each in one atomic step. A reset then ends all
 * holds of the buckets, so that no end of an earlier request changes them again.
 */
export async function changeBuckets(
  asked: PolicyQuestion,
  context: QuestionContext,
): Promise<QuestionResult> {
  const { question, policy } = asked;
  const { calls, keyPrefix, store } = context;
  const found = findLimits(planSource(context, policy), question);
  if (typeof found === 'string') return new QuestionFailure(400, found);
  const changes = changesOf(question, found);
  if (typeof changes === 'string') return new QuestionFailure(400, changes);
  const isDry = question.dry_run === true;
  const answers = await calls.ask(changes.map(({ call }) => (isDry ? { ...call, hits: 0 } : call)));
  const notes = [...found.notes];
  const held = question.action === 'reset' ? heldLimits(changes.map(({ limit }) => limit)) : [];
  if (found.limits.some(({ rate }) => rate.kind === 'concurrency')) {
    notes.push(
      'Concurrency limits are not changed, because they count requests in flight. To end holds, use release.',
    );
  }
  if (!isDry) notes.push(...(await announceChanges(answers, context)));
  const failure = failureOfAll(answers);
  if (failure !== undefined) {
    // A dry run only peeks.
    return isDry ? new QuestionFailure(503, storeUnread(failure)) : failedChange(failure);
  }
  const failed = (error: StorageError): string => (isDry ? notAsked(error) : sentence(changeFailed(error)));
  const results = await releaseFrom(held, { hold: undefined, isDry }, context, policy.domain);
  if (releasedCount(results) > 0) notes.push(...releaseNotes(results, isDry));
  const buckets = changes.map((change, i): ShownBucket => {
    const answer = answers[i] as BucketFound | StorageError;
    const there = answer instanceof StorageError ? { note: failed(answer) } : levels(change, answer, isDry);
    const released = results[held.findIndex(({ limit }) => limit === change.limit)];
    return shownLimit(change.limit, keyPrefix, { ...(released && shownRelease(released)), ...there });
  });
  notes.push(...notesOn(question, changes, buckets));
  const { meets, entries } = found;
  const { rule } = question;
  const unchanged = found.limits.filter(
    (limit) => limit.take === undefined && limit.rate.kind !== 'concurrency' && isOfRule(limit, rule),
  );
  const more = found.more + unchanged.length;
  return answerTo(asked, store.name, entries, { meets, buckets, more, notes });
}

/** Returns the operations on known buckets of the selected rule, or the reason why no bucket is known. */
function changesOf(question: BucketQuestion, found: FoundLimits): readonly Change[] | string {
  const { tokens } = question;
  const limits = selectLimits(question, found);
  if (typeof limits === 'string') return limits;
  const changeable = limits.filter(({ rate }) => rate.kind !== 'concurrency');
  if (changeable.length === 0) {
    return 'a concurrency limit has no tokens to give back, because it counts requests in flight; use release';
  }
  const known = changeable.flatMap((limit) =>
    limit.take === undefined
      ? []
      : // As many hits fill any bucket, and empty any window.
        { limit, call: { take: limit.take, hits: tokens ?? Number.MAX_SAFE_INTEGER } },
  );
  return known.length > 0 ? known : valuesMissing(changeable);
}

/** Returns the limits of the rule in a question, or an error message if no limit has this rule. */
export function selectLimits({ rule }: BucketQuestion, found: FoundLimits): readonly FoundLimit[] | string {
  if (found.meets === 'nothing')
    return 'no limit applies to these entries, so there is no bucket to change; check the entries with weir explain';
  if (found.limits.length === 0)
    return 'the rules for these entries are unlimited, so there is no bucket to change';
  const limits = found.limits.filter((limit) => isOfRule(limit, rule));
  if (limits.length > 0) return limits;
  const labels = [...new Set(found.limits.map(({ label }) => quotedText(label)))];
  const there = firstNames(labels, MAX_NAMED);
  return `rule must be a rule that these entries match (${there}), not ${quotedText(rule ?? '')}`;
}

/** Returns whether a limit is one of the rule in a question. */
function isOfRule({ label, name }: FoundLimit, rule: string | undefined): boolean {
  return rule === undefined || label === rule || name === rule;
}

/** Returns an error message for limits whose buckets are unknown. */
export function valuesMissing(limits: readonly FoundLimit[]): string {
  const missing = [...new Set(limits.flatMap((limit) => limit.missing))].slice(0, MAX_NAMED).map(quotedText);
  return `these entries do not identify a bucket; also specify the value of ${missing.join(', ')}`;
}

function levels(
  { limit: { rate }, call }: Change,
  { before, after }: BucketFound,
  isDry: boolean,
): { before: BucketLevel; now: BucketLevel } {
  const now = isDry ? levelWith(rate, before, call.hits) : levelOf(rate, after);
  return { before: levelOf(rate, before), now };
}

/** Tells all processes to discard cached denials if buckets have changed. Returns warnings if that fails. */
async function announceChanges(
  answers: readonly (BucketFound | StorageError)[],
  { store }: QuestionContext,
): Promise<readonly string[]> {
  const isChanged = answers.some((answer) => !(answer instanceof StorageError) || mayHaveChanged(answer));
  if (!isChanged || (await store.announceFilled()) === undefined) return [];
  return [
    'Other processes could not be notified. If they cache denials (DENY_CACHE_MAX_AGE, ' +
      'LOCAL_CACHE_SIZE_IN_BYTES), they may deny requests until the cached denials expire.',
  ];
}

function notesOn(
  { action, tokens = 0, dry_run: dryRun }: BucketQuestion,
  changes: readonly Change[],
  buckets: readonly ShownBucket[],
): readonly string[] {
  const notes: string[] = [];
  const failed = buckets.filter(({ now }) => now === undefined).length;
  if (failed > 0)
    notes.push(
      `${failed} of ${quantity(buckets.length, 'bucket')} may be unchanged. See the note on each bucket.`,
    );
  const isCut = changes.some(({ limit }, i) => {
    const { before, now } = buckets[i] as ShownBucket;
    if (before === undefined || now === undefined || action !== 'grant') return false;
    return now.left < before.left - before.debt + tokens && now.left >= limit.rate.reportedLimit;
  });
  if (isCut)
    notes.push(`${dryRun === true ? 'Tokens would be' : 'Tokens were'} granted only up to the capacity.`);
  return notes;
}
