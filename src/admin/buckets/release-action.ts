import { mapped } from '../../http/views/view-slices.js';
import { StorageError } from '../../limiter/bucket-store.js';
import { heldCount, MAX_SLOTS_PER_ITEM, type Settlement } from '../../limiter/holds/hold.js';
import { MAX_LISTED_HOLDS, storedCount } from '../../limiter/holds/hold-book.js';
import { quantity } from '../../quantity.js';
import { turn } from '../../runtime/turns.js';
import { heldRule } from '../../service/holds/held-rules.js';
import { type HoldEnd, holdEnd } from '../../service/holds/settle.js';
import type { BucketFound } from './bucket-calls.js';
import { selectLimits, valuesMissing } from './bucket-changes.js';
import { levelOf } from './bucket-level.js';
import { type FoundLimit, findLimits } from './found-limits.js';
import { decodeHoldId } from './hold-id.js';
import type { ShownBucket } from './messages.js';
import {
  answerTo,
  type CallerQuestion,
  changeFailed,
  failedChange,
  LOOK_BUCKETS,
  planSource,
  type QuestionContext,
  QuestionFailure,
  type QuestionResult,
} from './question-context.js';
import { failureOfAll, notAsked, shownLimit } from './shown-buckets.js';
import { type HeldLimit, heldLimits, settlementOfStored } from './shown-holds.js';

/** Maximum number of holds, and maximum {@link heldCount}, of a request to the store. It takes about a millisecond. */
const HOLDS_PER_TAKE = 64;
const WORK_PER_TAKE = MAX_SLOTS_PER_ITEM;
/** Time after which `release` begins no further requests, in microseconds. The caller waits for the answer. */
const MAX_RELEASE_MICROS = 4_000_000;

/** Result of a release in one bucket. */
interface Released {
  readonly count: number;
  /** Whether holds may remain, because there were too many. In a dry run, whether `count` is only a maximum. */
  readonly isPartial: boolean;
  readonly failure: StorageError | undefined;
}

/**
 * Runs `release`: settles one hold or all holds of the buckets, with a use of 0. Their slots or hits are free again,
 * and the end of their requests has no effect.
 */
export async function releaseHolds(asked: CallerQuestion, context: QuestionContext): Promise<QuestionResult> {
  const { question, policy } = asked;
  const { slices, calls, clock, keyPrefix, store } = context;
  const found = await slices.run(findLimits(planSource(context, policy), question));
  if (typeof found === 'string') return new QuestionFailure(400, found);
  const limits = selectLimits(question, found);
  if (typeof limits === 'string') return new QuestionFailure(400, limits);
  const held = heldLimits(limits);
  if (held.length === 0) return new QuestionFailure(400, withoutHolds(limits));
  const peek = () => calls.ask(held.map(({ take }) => ({ take, hits: 0, over: false })));
  const before = await peek();
  const unavailable = failureOfAll(before);
  if (unavailable !== undefined) return new QuestionFailure(503, notAsked(unavailable));

  const isDry = question.dry_run === true;
  const hold = question.hold === undefined ? undefined : decodeHoldId(question.hold);
  const release = isDry ? countHolds : hold === undefined ? releaseAll : releaseOne;
  const results: Released[] = [];
  const untilMicros = clock.monotonicMicros() + MAX_RELEASE_MICROS;
  for (const one of held) results.push(await release(one, context, policy.domain, hold, untilMicros));
  const count = results.reduce((sum, released) => sum + released.count, 0);
  const failure = results.find((released) => released.failure !== undefined)?.failure;
  if (count === 0 && failure !== undefined) return failedChange(failure, LOOK_BUCKETS);
  if (count === 0 && hold !== undefined) return new QuestionFailure(404, NO_SUCH_HOLD);

  const after = isDry ? before : await peek();
  const steps = mapped(held, ({ limit }, i): ShownBucket => {
    const released = results[i] as Released;
    const note = released.failure && `The release failed: ${changeFailed(released.failure, LOOK_BUCKETS)}.`;
    return shownLimit(limit, keyPrefix, {
      ...levelsOf(limit, before[i], after[i]),
      released: released.count,
      ...(note !== undefined && { note }),
    });
  });
  const { meets, entries, notes } = found;
  return answerTo(asked, policy, store.name, entries, {
    meets,
    buckets: await slices.run(steps),
    more: found.more + limits.length - held.length,
    notes: [...notes, ...notesOn(count, results, isDry)],
  });
}

const NO_SUCH_HOLD =
  'these buckets have no hold with this ID, because the hold was settled or released, or has expired; list ' +
  'the current holds with weir bucket show';

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

function notesOn(count: number, results: readonly Released[], isDry: boolean): readonly string[] {
  const holds = quantity(count, 'hold');
  const isPartial = results.some((released) => released.isPartial);
  if (isDry) return [`${isPartial ? `At most ${holds}` : holds} would be released.`];
  const notes = [`${holds} released.`];
  if (count > 0) notes.push('If requests of these holds still run, weir does not count them any more.');
  if (isPartial) {
    notes.push('Some holds remain, because there are too many for one command. Run the command again.');
  }
  return notes;
}

/**
 * Counts the holds that a release would end. The store counts slots instead of holds if there are too many for a list.
 */
async function countHolds(
  { take }: HeldLimit,
  { store }: QuestionContext,
  _domain: string,
  hold: Settlement | undefined,
): Promise<Released> {
  if (hold !== undefined) {
    const found = await store.holds.hasHold(take, hold);
    const failure = found instanceof StorageError ? found : undefined;
    return { count: found === true ? 1 : 0, isPartial: false, failure };
  }
  const listed = await store.holds.listHolds(take, MAX_LISTED_HOLDS);
  if (listed instanceof StorageError) return { count: 0, isPartial: false, failure: listed };
  const isPartial = listed.more > 0 && take.rate.kind === 'concurrency';
  return { count: listed.holds.length + listed.more, isPartial, failure: undefined };
}

/** Ends the holds that exist now, those that expire first at the beginning, until `untilMicros`. */
async function releaseAll(
  held: HeldLimit,
  context: QuestionContext,
  domain: string,
  _hold: undefined | Settlement,
  untilMicros: number,
): Promise<Released> {
  const { store, clock } = context;
  let count = 0;
  /** Slots or reservations that existed at the beginning. Later ones expire later, so they remain. */
  let left = Number.POSITIVE_INFINITY;
  while (left > 0) {
    const listed = await store.holds.listHolds(held.take, MAX_LISTED_HOLDS);
    if (listed instanceof StorageError) return { count, isPartial: false, failure: listed };
    const slots = storedCount(listed.holds, held.take.rate);
    left = Math.min(left, slots + listed.more);
    const settlements = listed.holds.map((hold) => settlementOfStored(hold, held));
    const { count: ended, failure } = await settle(held, settlements, context, domain);
    count += ended;
    if (failure !== undefined) return { count, isPartial: false, failure };
    left -= slots;
    // Other processes may have ended all of them in the meantime.
    const isOver = clock.monotonicMicros() >= untilMicros;
    if (left > 0 && (ended === 0 || isOver)) return { count, isPartial: true, failure };
  }
  return { count, isPartial: false, failure: undefined };
}

function releaseOne(
  held: HeldLimit,
  context: QuestionContext,
  domain: string,
  hold: Settlement | undefined,
): Promise<Released> {
  return settle(held, hold === undefined ? [] : [hold], context, domain);
}

/** Settles holds with a use of 0, until the store fails. */
async function settle(
  { take, rule }: HeldLimit,
  settlements: readonly Settlement[],
  { store, clock, counts }: QuestionContext,
  domain: string,
): Promise<Released> {
  const { key, tagLength } = take;
  const held = heldRule(rule);
  const place = {
    key,
    tagLength,
    rule: held.digest,
    isLocal: false,
    freesUnknown: rule.hold?.unknown === 'free',
  };
  let count = 0;
  const ends = settlements.map((settlement) => holdEnd(held, { ...settlement, ...place }, 0));
  for (const part of partsOf(ends)) {
    const items = part.map(({ item }) => item);
    const deadlineMicros = clock.monotonicMicros() + store.timeoutMicros;
    const result = await store.buckets.take(items, deadlineMicros, store);
    if (result instanceof StorageError) return { count, isPartial: false, failure: result };
    for (const [i, { hold }] of result.entries()) {
      if (hold !== 'settled') continue;
      count++;
      counts.released(domain, rule.path, part[i]?.hold?.amount ?? 0);
    }
    await turn();
  }
  return { count, isPartial: false, failure: undefined };
}

/** Divides ends of holds into parts that a store settles in a short time. */
function partsOf(ends: readonly HoldEnd[]): readonly (readonly HoldEnd[])[] {
  const parts: HoldEnd[][] = [];
  let part: HoldEnd[] = [];
  let work = 0;
  for (const end of ends) {
    const more = heldCount(end.item);
    if (part.length === 0 || part.length === HOLDS_PER_TAKE || work + more > WORK_PER_TAKE) {
      part = [];
      work = 0;
      parts.push(part);
    }
    part.push(end);
    work += more;
  }
  return parts;
}
