import { expect, test } from '@jest/globals';
import type { Answer } from '../../chaos/calls/answer.js';
import type { Bucket } from '../../chaos/calls/buckets.js';
import type { Reply } from '../../chaos/calls/paced-client.js';
import { BUDGET, type HeldRequest, HoldRound, SLOTS } from '../../chaos/holds/hold-round.js';

const { maxTokens: slots } = SLOTS;
const { maxTokens: budget } = BUDGET;
/** Use of each request, and its estimate. */
const USED = 20;
const ESTIMATE = 50;

const round = (fault?: string) => new HoldRound('1', fault);
const reply = (sentMs: number, endMs = sentMs + 5): Reply => ({
  ...{ sentMs, endMs, status: 0, details: '', response: undefined, malformed: undefined },
});

let tokens = 0;
function start(of: HoldRound, sentMs: number, ...requested: readonly Bucket[]): HeldRequest {
  const held = { round: of, token: `${tokens++}`, requested, sentMs, dueMs: 0, used: USED };
  of.answered(requested, reply(sentMs), { kind: 'allowed' }, false);
  of.started(held, sentMs + 5);
  return held;
}
const answer = (of: HoldRound, answered: Answer, isSharded = false) =>
  of.answered([BUDGET, SLOTS], reply(0), answered, isSharded);

test('a request is in flight until its end is sent, or its hold expires', () => {
  const one = round();
  const held = Array.from({ length: slots }, () => start(one, 0, SLOTS));
  one.ending(held[0] as HeldRequest, 10);
  start(one, 10, SLOTS);
  // The others have expired.
  for (let i = 0; i < slots; i++) start(one, 1020, SLOTS);
  expect(one.excess).toBe(0);
  expect(one.problems(slots, budget)).toEqual([]);
  start(one, 1030, SLOTS);
  expect(one.excess).toBe(1);
  expect(one.problems(slots, budget)).toHaveLength(1);
});

test('a Redis that loses holds allows up to as many requests again', () => {
  const one = round();
  one.mayExceed = true;
  for (let i = 0; i < 2 * slots; i++) start(one, 0, SLOTS);
  expect(one.problems(slots, budget)).toEqual([]);
  start(one, 0, SLOTS);
  expect(one.problems(slots, budget)).toHaveLength(1);
});

test('all slots must be free after the round', () => {
  const one = round();
  expect(one.problems(slots - 1, budget)).toHaveLength(1);
  one.hasClockSteps = true;
  expect(one.problems(slots - 1, budget)).toEqual([]);
});

test('the budget lacks the use of settled requests, and the estimates of the others', () => {
  const one = round();
  start(one, 0, BUDGET);
  one.ending(start(one, 0, BUDGET), 100)(reply(100));
  answer(one, { kind: 'denied', empty: [BUDGET] });
  const left = budget - ESTIMATE - USED;
  expect(one.isExact).toBe(true);
  expect(one.problems(slots, left)).toEqual([]);
  expect(one.problems(slots, left - 1)).toHaveLength(1);
  expect(one.problems(slots, left + 1)).toHaveLength(1);
});

test.each([
  ['its settlement took long', reply(100, 300)],
  ['its settlement was late', reply(900)],
])('the budget lacks the use or the estimate of a request if %s', (_, settled) => {
  const one = round();
  one.ending(start(one, 0, BUDGET), settled.sentMs)(settled);
  expect(one.isExact).toBe(false);
  expect(one.problems(slots, budget - USED)).toEqual([]);
  expect(one.problems(slots, budget - ESTIMATE)).toEqual([]);
  expect(one.problems(slots, budget - USED + 1)).toHaveLength(1);
  expect(one.problems(slots, budget - ESTIMATE - 1)).toHaveLength(1);
});

test('the budget may lack the estimate of a request without a decision', () => {
  const one = round();
  answer(one, { kind: 'by-policy' });
  // Several nodes took part in the request, and one of them may not have got the estimate back.
  answer(one, { kind: 'denied', empty: [SLOTS] }, true);
  expect(one.problems(slots, budget)).toEqual([]);
  expect(one.problems(slots, budget - 2 * ESTIMATE)).toEqual([]);
  expect(one.problems(slots, budget - 2 * ESTIMATE - 1)).toHaveLength(1);
});

test('a budget allows no more than its hits, and may be in debt after settlements', () => {
  const one = round();
  for (let hits = 0; hits < budget; hits += ESTIMATE) start(one, 0, BUDGET);
  expect(one.problems(slots, 0)).toEqual([]);
  start(one, 0, BUDGET);
  expect(one.problems(slots, 0)).toHaveLength(1);
});

test('a start is denied only if all slots may be held', () => {
  const deny = (of: HoldRound, sentMs: number) =>
    of.answered([SLOTS], reply(sentMs), { kind: 'denied', empty: [SLOTS] }, false);
  for (const fault of [undefined, 'a fault']) {
    const one = round(fault);
    const held = Array.from({ length: slots }, () => start(one, 0, SLOTS));
    const ended = one.ending(held[0] as HeldRequest, 100);
    deny(one, 101);
    ended(reply(100));
    expect(one.problems(slots, budget)).toEqual([]);
    deny(one, 106);
    expect(one.problems(slots, budget)).toHaveLength(fault === undefined ? 1 : 0);
  }
});
