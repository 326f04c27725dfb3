import { StorageError } from '../../limiter/bucket-store.js';
import { planOfCustomer } from '../../policy/plans/customer-plan.js';
import { PLAN_FLAGS, UNLIMITED } from '../../policy/plans/plan-table.js';
import type { BucketFound } from './bucket-calls.js';
import { selectLimits, valuesMissing } from './bucket-changes.js';
import { levelOf } from './bucket-level.js';
import { type FoundLimit, findLimits } from './found-limits.js';
import { decodeHoldId } from './holds/hold-id.js';
import {
  type Released,
  releasedCount,
  releaseFrom,
  releaseNotes,
  shownRelease,
} from './holds/released-holds.js';
import { heldLimits } from './holds/shown-holds.js';
import type { ShownBucket } from './messages.js';
import {
  answerTo,
  failedChange,
  type PolicyQuestion,
  planSource,
  type QuestionContext,
  QuestionFailure,
  type QuestionResult,
} from './question-context.js';
import { failureOfAll, shownLimit, storeUnread } from './shown-buckets.js';

/**
 * Runs `release`: settles one hold or all holds of the buckets, with a use of 0. Their slots or hits are free again,
 * and the end of their requests has no effect.
 */
export async function releaseHolds(asked: PolicyQuestion, context: QuestionContext): Promise<QuestionResult> {
  const { question, policy } = asked;
  const { calls, keyPrefix, store } = context;
  const found = findLimits(planSource(context, policy), question);
  if (typeof found === 'string') return new QuestionFailure(400, found);
  const selected = selectLimits(question, found);
  const limits = typeof selected === 'string' ? [] : selected;
  const held = heldLimits(limits);
  const plan = planOfCustomer(policy.plans, found.entries);
  if (held.length === 0 && policy.hasHolds && plan?.flags.includes(PLAN_FLAGS[UNLIMITED]) === true)
    return new QuestionFailure(400, HOLDS_OF_UNLIMITED);
  if (typeof selected === 'string') return new QuestionFailure(400, selected);
  if (held.length === 0) return new QuestionFailure(400, withoutHolds(limits));
  const peek = () => calls.ask(held.map(({ take }) => ({ take, hits: 0 })));
  const before = await peek();
  const unavailable = failureOfAll(before);
  if (unavailable !== undefined) return new QuestionFailure(503, storeUnread(unavailable));

  const isDry = question.dry_run === true;
  const hold = question.hold === undefined ? undefined : decodeHoldId(question.hold);
  const results = await releaseFrom(held, { hold, isDry }, context, policy.domain);
  const count = releasedCount(results);
  const failure = results.find((released) => released.failure !== undefined)?.failure;
  if (count === 0 && failure !== undefined) return failedChange(failure);
  if (count === 0 && hold !== undefined) return new QuestionFailure(404, NO_SUCH_HOLD);

  const after = isDry ? before : await peek();
  const buckets = held.map(({ limit }, i): ShownBucket => {
    const released = results[i] as Released;
    return shownLimit(limit, keyPrefix, {
      ...levelsOf(limit, before[i], after[i]),
      ...shownRelease(released),
    });
  });
  const { meets, entries, notes } = found;
  return answerTo(asked, store.name, entries, {
    meets,
    buckets,
    more: found.more + limits.filter(({ take, hasHolds }) => take === undefined && hasHolds).length,
    notes: [...notes, ...releaseNotes(results, isDry)],
  });
}

const NO_SUCH_HOLD =
  'these buckets have no hold with this ID, because the hold was settled or released, or has expired; list ' +
  'the current holds with weir bucket show';

const HOLDS_OF_UNLIMITED =
  'the customer is unlimited, so these entries have no limits with holds; holds from before limit no requests, and ' +
  'expire; to release them now, remove unlimited from the row of the customer, wait until weir has loaded it, and ' +
  'run this command again';

function withoutHolds(limits: readonly FoundLimit[]): string {
  if (limits.every(({ take }) => take === undefined)) return valuesMissing(limits);
  return 'these limits have no holds; only concurrency limits and limits with "hold" have holds';
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
