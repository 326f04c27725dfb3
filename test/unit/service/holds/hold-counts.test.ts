/* Counts of holds, as the metrics receive them. */
import { beforeEach, expect, test } from '@jest/globals';
import type { RateLimitResponse } from '../../../../src/codec/messages.js';
import { type BucketStore, StorageError } from '../../../../src/limiter/bucket-store.js';
import { Decider, descriptor } from '../../../support/policy/decider.js';
import { waitFor } from '../../../support/process/wait-for.js';

const POLICY = `
domain: d
descriptors:
  - key: llm
    rate_limits:
      - { name: streams, concurrency: { max: 1, expires_after: 1m } }
      - { name: tokens, unit: day, requests_per_unit: 1000, hold: { amount: 10, expires_after: 10m } }
  - key: tried
    rate_limit: { concurrency: { max: 5 } }
`;

let decider: Decider;
beforeEach(() => {
  decider = new Decider(POLICY);
});
const tokenOf = ({ dynamicMetadata }: RateLimitResponse) => String(dynamicMetadata?.['hold']);
const start = (entry: string) => tokenOf(decider.answer([descriptor([entry])]));
/** Returns what `action` counts for holds. */
function counted(action: () => unknown): readonly string[] {
  const { told } = decider.observer;
  told.length = 0;
  action();
  return told.filter((one) => /placed|settled|token$/.test(one));
}

test('a request counts its holds at the start, and their use at the end', () => {
  let token = '';
  expect(counted(() => (token = start('llm=a')))).toEqual([
    'd llm[streams] placed 1',
    'd llm[tokens] placed 10',
  ]);
  const end = () => decider.answer([descriptor([`hold=${token}`], { hitsAddend: 25 })]);
  expect(counted(end)).toEqual(['d llm[streams] settled 1 used 1', 'd llm[tokens] settled 10 used 25']);
  expect(counted(end)).toEqual(['d unknown token', 'd unknown token']);
});

test('an end without a use counts as unknown, except for a concurrency limit', () => {
  const token = start('llm=a');
  expect(counted(() => decider.answer([descriptor([`hold=${token}`, 'done=1'])]))).toEqual([
    'd llm[streams] settled 1 used 1',
    'd llm[tokens] settled 10 used unknown',
  ]);
});

test('a denied request counts no hold', () => {
  start('llm=a');
  expect(counted(() => start('llm=a'))).toEqual([]);
});

test('a settlement after the hold has expired, and another text, count as tokens without a hold', () => {
  const token = start('tried=a');
  decider.clock.advance(61_000_000);
  expect(counted(() => decider.answer([descriptor([`hold=${token}`])]))).toEqual(['d unknown token']);
  expect(counted(() => decider.answer([descriptor(['hold=guess'])]))).toEqual(['d malformed token']);
});

/** Lets the store execute calls without an answer while `isSilent`. */
function silenceStore(): { isSilent: boolean } {
  const { store } = decider.options;
  const state = { isSilent: false };
  const lossy: BucketStore = {
    take: (takes, deadlineMicros) => {
      const result = store.take(takes, deadlineMicros);
      return state.isSilent ? new StorageError('timeout', 'no answer in time') : result;
    },
    close: async () => {},
  };
  decider = new Decider(POLICY, { store: lossy });
  return state;
}

/** Returns what is counted for the end of a token whose first attempt gets no answer. */
async function countedWithoutAnswer(state: { isSilent: boolean }, token: string): Promise<readonly string[]> {
  state.isSilent = true;
  expect(counted(() => decider.answer([descriptor([`hold=${token}`], { hitsAddend: 25 })]))).toEqual([]);
  state.isSilent = false;
  const told = () => decider.observer.told.filter((one) => /settled|token$/.test(one));
  await waitFor('the repeated ends', () => told().length === 2);
  return told();
}

test('a token of a hold that has ended never counts as settled, also without an answer', async () => {
  const state = silenceStore();
  const token = start('llm=a');
  expect(counted(() => decider.answer([descriptor([`hold=${token}`])]))).toHaveLength(2);
  expect(await countedWithoutAnswer(state, token)).toEqual(['d unknown token', 'd unknown token']);
});

test('an end that the store executes without an answer does not count as settled, but ends the hold', async () => {
  const state = silenceStore();
  const token = start('llm=a');
  expect(await countedWithoutAnswer(state, token)).toEqual(['d unknown token', 'd unknown token']);
  expect(counted(() => start('llm=a'))).toEqual(['d llm[streams] placed 1', 'd llm[tokens] placed 10']);
});

test('ends that are given up count as lost, those of invented tokens as unverified', async () => {
  const down = new StorageError('breaker_open', 'Redis is down', { unsent: true });
  const { store } = decider.options;
  let isDown = false;
  const take: BucketStore['take'] = (takes, deadline) => (isDown ? down : store.take(takes, deadline));
  decider = new Decider(POLICY, { store: { take, close: async () => {} } });
  const token = start('tried=a');
  isDown = true;
  for (const text of [token, `h${'x'.repeat(22)}${token.slice(23)}`])
    decider.answer([descriptor([`hold=${text}`])]);
  decider.observer.told.length = 0;
  expect(await decider.service.drainHolds(0)).toBe(2);
  expect(decider.observer.told).toEqual(['d tried settlement lost', 'd unverified token']);
});
