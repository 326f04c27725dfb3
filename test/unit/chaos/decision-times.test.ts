import { expect, test } from '@jest/globals';
import { Decisions } from '../../chaos/testbed/decision-times.js';

const WITHIN_MS = 20;

test('decisions are back when every name has had one that was asked for since', async () => {
  const decisions = new Decisions();
  decisions.decide('one', 90, 110);
  decisions.decide('other', 120, 130);
  expect(await decisions.since(100, ['one', 'other'], [], WITHIN_MS)).toBeUndefined();
  decisions.decide('one', 140, 150);
  expect(await decisions.since(100, ['one', 'other'], [], WITHIN_MS)).toBe(150);
});

test('what is asked for seldom makes it later only where a call for it had no decision', async () => {
  const decisions = new Decisions();
  decisions.decide('one', 120, 130);
  expect(await decisions.since(100, ['one'], ['rare'], WITHIN_MS)).toBeUndefined();
  decisions.decide('rare', 500, 510);
  expect(await decisions.since(100, ['one'], ['rare'], WITHIN_MS)).toBe(130);
  decisions.miss('rare', 140);
  expect(await decisions.since(100, ['one'], ['rare'], WITHIN_MS)).toBe(510);
});
