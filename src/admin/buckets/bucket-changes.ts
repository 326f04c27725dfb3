import { StorageError } from '../../limiter/bucket-store.js';
import { planOfCustomer } from '../../policy/plans/plan-nodes.js';
import { PLAN_FLAGS, UNLIMITED } from '../../policy/plans/plan-table.js';
import { listSome, plural } from '../../runtime/texts.js';
import { askBuckets, type BucketCall, type BucketFound, levelOf, levelWith } from './bucket-calls.js';
import type { FoundLimit, FoundLimits } from './found-limits.js';
import { decodeHoldId } from './holds/hold-id.js';
import {
  heldLimits,
  type Released,
  releasedCount,
  releaseFrom,
  releaseNotes,
  shownRelease,
} from './holds/holds.js';
import type { BucketAnswer, BucketLevel, BucketQuestion, ShownBucket } from './messages.js';
import {
  changeFailed,
  failedChange,
  mayHaveChanged,
  type QuestionContext,
  QuestionFailure,
  quotedText,
} from './read-question.js';
import {
  answerTo,
  failureOfAll,
  notAsked,
  type PolicyQuestion,
  sentence,
  shownLimit,
  unreadFailure,
} from './shown-buckets.js';

/** Maximum number of rules in a message. */
const MAX_NAMED = 10;

/** A limit with a known bucket, and the operation on it. */
interface Change extends BucketCall {
  readonly limit: FoundLimit;
}

/**
 * Runs `reset` and `grant`: gives tokens back to every known bucket, each in one atomic step. A reset then ends all
 * holds of the buckets, so that no end of an earlier request changes them again.
 */
export async function changeBuckets(asked: PolicyQuestion, context: QuestionContext): Promise<BucketAnswer> {
  const { question, policy, found } = asked;
  const changes = changesOf(question, found);
  const isDry = question.dry_run === true;
  const answers = await askBuckets(
    changes.map(({ take, hits }) => ({ take, hits: isDry ? 0 : hits })),
    context,
  );
  const notes = [...found.notes];
  const held = question.action === 'reset' ? heldLimits(changes.map(({ limit }) => limit)) : [];
  if (found.limits.some(({ rate }) => rate.kind === 'concurrency')) {
    notes.push(
      'Concurrency limits are not changed, because they count requests in flight. To end holds, use release.',
    );
  }
  if (!isDry) notes.push(...(await announceChanges(answers, context)));
  const failure = failureOfAll(answers);
  // A dry run only peeks.
  if (failure !== undefined) throw isDry ? unreadFailure(failure) : failedChange(failure);
  const failed = (error: StorageError): string => (isDry ? notAsked(error) : sentence(changeFailed(error)));
  const results = await releaseFrom(held, { hold: undefined, isDry }, context, policy.domain);
  if (releasedCount(results) > 0) notes.push(...releaseNotes(results, isDry));
  const buckets = changes.map((change, i): ShownBucket => {
    const answer = answers[i] as BucketFound | StorageError;
    const there = answer instanceof StorageError ? { note: failed(answer) } : levels(change, answer, isDry);
    const released = results[held.findIndex(({ limit }) => limit === change.limit)];
    return shownLimit(change.limit, context.keyPrefix, { ...(released && shownRelease(released)), ...there });
  });
  notes.push(...notesOn(question, changes, buckets));
  const unchanged = found.limits.filter(
    (limit) =>
      limit.take === undefined && limit.rate.kind !== 'concurrency' && isOfRule(limit, question.rule),
  );
  return answerTo(asked, context, { buckets, more: found.more + unchanged.length, notes });
}

/** Returns the operations on known buckets of the selected rule. Throws if no bucket is known. */
function changesOf(question: BucketQuestion, found: FoundLimits): readonly Change[] {
  const { tokens } = question;
  const changeable = selectLimits(question, found).filter(({ rate }) => rate.kind !== 'concurrency');
  if (changeable.length === 0) {
    throw new QuestionFailure(
      400,
      'a concurrency limit has no tokens to give back, because it counts requests in flight; use release',
    );
  }
  const known = changeable.flatMap((limit) =>
    limit.take === undefined
      ? []
      : // As many hits fill any bucket, and empty any window.
        { limit, take: limit.take, hits: tokens ?? Number.MAX_SAFE_INTEGER },
  );
  if (known.length === 0) throw valuesMissing(changeable);
  return known;
}

function selectLimits({ rule }: BucketQuestion, found: FoundLimits): readonly FoundLimit[] {
  if (found.meets === 'nothing')
    throw new QuestionFailure(
      400,
      'no limit applies to these entries, so there is no bucket to change; check the entries with weir explain',
    );
  if (found.limits.length === 0)
    throw new QuestionFailure(
      400,
      'the rules for these entries are unlimited, so there is no bucket to change',
    );
  const limits = found.limits.filter((limit) => isOfRule(limit, rule));
  if (limits.length > 0) return limits;
  const labels = [...new Set(found.limits.map(({ rulePath }) => quotedText(rulePath)))];
  const there = listSome(labels, MAX_NAMED);
  throw new QuestionFailure(
    400,
    `rule must be a rule that these entries match (${there}), not ${quotedText(rule ?? '')}`,
  );
}

function isOfRule({ rulePath, name }: FoundLimit, rule: string | undefined): boolean {
  return rule === undefined || rulePath === rule || name === rule;
}

function valuesMissing(limits: readonly FoundLimit[]): QuestionFailure {
  const missing = [...new Set(limits.flatMap((limit) => limit.missing))].slice(0, MAX_NAMED).map(quotedText);
  return new QuestionFailure(
    400,
    `these entries do not identify a bucket; also specify the value of ${missing.join(', ')}`,
  );
}

function levels(
  { limit: { rate }, hits }: Change,
  { before, after }: BucketFound,
  isDry: boolean,
): { before: BucketLevel; now: BucketLevel } {
  const now = isDry ? levelWith(rate, before, hits) : levelOf(rate, after);
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
      `${failed} of ${plural(buckets.length, 'bucket')} may be unchanged. See the note on each bucket.`,
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

/**
 * Runs `release`: settles one hold or all holds of the buckets, with a use of 0. Their slots or hits are free again,
 * and the end of their requests has no effect.
 */
export async function releaseHolds(asked: PolicyQuestion, context: QuestionContext): Promise<BucketAnswer> {
  const { question, policy, found } = asked;
  const held = heldLimits(found.limits.filter((limit) => isOfRule(limit, question.rule)));
  const plan = planOfCustomer(policy.plans, found.entries);
  if (held.length === 0 && policy.hasHolds && plan?.flags.includes(PLAN_FLAGS[UNLIMITED]) === true)
    throw new QuestionFailure(400, HOLDS_OF_UNLIMITED);
  const limits = selectLimits(question, found);
  if (held.length === 0) throw withoutHolds(limits);
  const peek = () =>
    askBuckets(
      held.map(({ take }) => ({ take, hits: 0 })),
      context,
    );
  const before = await peek();
  const unavailable = failureOfAll(before);
  if (unavailable !== undefined) throw unreadFailure(unavailable);

  const isDry = question.dry_run === true;
  const hold = question.hold === undefined ? undefined : decodeHoldId(question.hold);
  const results = await releaseFrom(held, { hold, isDry }, context, policy.domain);
  const count = releasedCount(results);
  const failure = results.find((released) => released.failure !== undefined)?.failure;
  if (count === 0 && failure !== undefined) throw failedChange(failure);
  if (count === 0 && hold !== undefined) throw new QuestionFailure(404, NO_SUCH_HOLD);

  const after = isDry ? before : await peek();
  const buckets = held.map(({ limit }, i): ShownBucket => {
    const released = results[i] as Released;
    return shownLimit(limit, context.keyPrefix, {
      ...levelsOf(limit, before[i], after[i]),
      ...shownRelease(released),
    });
  });
  return answerTo(asked, context, {
    buckets,
    more: found.more + limits.filter(({ take, hasHolds }) => take === undefined && hasHolds).length,
    notes: [...found.notes, ...releaseNotes(results, isDry)],
  });
}

const NO_SUCH_HOLD =
  'these buckets have no hold with this ID, because the hold was settled or released, or has expired; list ' +
  'the current holds with weir bucket show';

const HOLDS_OF_UNLIMITED =
  'the customer is unlimited, so these entries have no limits with holds; holds from before limit no requests, and ' +
  'expire; to release them now, remove unlimited from the row of the customer, wait until weir has loaded it, and ' +
  'run this command again';

function withoutHolds(limits: readonly FoundLimit[]): QuestionFailure {
  if (limits.every(({ take }) => take === undefined)) return valuesMissing(limits);
  return new QuestionFailure(
    400,
    'these limits have no holds; only concurrency limits and limits with "hold" have holds',
  );
}

function levelsOf(
  { rate }: FoundLimit,
  before: BucketFound | StorageError | undefined,
  after: BucketFound | StorageError | undefined,
): Pick<ShownBucket, 'before' | 'now'> {
  const level = (found: typeof before) =>
    found === undefined || found instanceof StorageError ? undefined : levelOf(rate, found.after);
  const [was, is] = [level(before), level(after)];
  return { ...(was && { before: was }), ...(is && { now: is }) };
}
