import { expect, test } from '@jest/globals';
import { DecisionTimes } from '../../chaos/testbed/decision-times.js';

const TIMEOUT_MS = 20;

test('the wait ends when every name has a decision of a call that was sent after the given time', async () => {
  const decisions = new DecisionTimes();
  decisions.record('one', 90, 110);
  decisions.record('other', 120, 130);
  expect(await decisions.waitForAll(100, ['one', 'other'], [], TIMEOUT_MS)).toBeUndefined();
  decisions.record('one', 140, 150);
  expect(await decisions.waitForAll(100, ['one', 'other'], [], TIMEOUT_MS)).toBe(150);
});

test('a rare name counts with its last call without a decision', async () => {
  const decisions = new DecisionTimes();
  decisions.record('one', 120, 130);
  expect(await decisions.waitForAll(100, ['one'], ['rare'], TIMEOUT_MS)).toBeUndefined();
  decisions.record('rare', 500, 510);
  expect(await decisions.waitForAll(100, ['one'], ['rare'], TIMEOUT_MS)).toBe(130);
  decisions.recordUndecided('rare', 140);
  expect(await decisions.waitForAll(100, ['one'], ['rare'], TIMEOUT_MS)).toBe(140);
});
