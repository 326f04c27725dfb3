import { expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import type { BucketStore, TakeResult } from '../../../src/limiter/bucket-store.js';
import { StorageError } from '../../../src/limiter/bucket-store.js';
import { CALLER_WITHOUT_DEADLINE } from '../../../src/service/caller.js';
import { bytesOf, MAX_STORE_WAITING_BYTES, WaitingRequests } from '../../../src/service/waiting-requests.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

const POLICY = `
domain: d
on_store_failure: allow
descriptors:
  - { key: a, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: seen, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 10 } }
`;
const MIB = 1024 * 1024;
/** Length of a request that need not wait for its turn. */
const LENGTH = 15_000;
const FULL = new StorageError('full', 'no room');
const LATE = new StorageError('timeout', 'no answer');

/** Answers on demand. */
class SlowStore implements BucketStore {
  readonly waiting: ((result: TakeResult) => void)[] = [];
  /** Answer if the request may not wait. */
  noRoom = FULL;

  take(_items: unknown, _deadline: unknown, mayWait = true): ReturnType<BucketStore['take']> {
    if (!mayWait) return this.noRoom;
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  async close(): Promise<void> {}
}

const padding = new Map<number, ReturnType<typeof descriptor>>();
/** A descriptor with a value of `bytes`; cached by length. */
function paddingOf(bytes: number): ReturnType<typeof descriptor> {
  let made = padding.get(bytes);
  if (made === undefined) {
    made = descriptor([`other=${'y'.repeat(bytes)}`]);
    padding.set(bytes, made);
  }
  return made;
}

const requestOf = (key: string, bytes: number) => ({
  domain: 'd',
  hitsAddend: 0,
  descriptors: [descriptor([`${key}=x`]), paddingOf(bytes)],
});

test('requests that wait for a silent store are bounded, and cannot be used to get around a limit', async () => {
  const store = new SlowStore();
  const { service } = new Decider(POLICY, { store });
  const ask = (connection: string, key = 'a') =>
    service.decide(requestOf(key, LENGTH), { ...CALLER_WITHOUT_DEADLINE, connection });
  for (let n = 0; n < 3000; n++) void ask('greedy');
  const held = store.waiting.length;
  expect(held).toBeGreaterThan((0.5 * MAX_STORE_WAITING_BYTES) / LENGTH);
  expect(held).toBeLessThan((0.7 * MAX_STORE_WAITING_BYTES) / LENGTH);
  // There is space for other requests.
  const other = ask('modest');
  expect(store.waiting).toHaveLength(held + 1);
  expect(await ask('greedy')).toMatchObject({ overallCode: CODE.OVER_LIMIT });
  expect(await ask('greedy', 'seen')).toMatchObject({ overallCode: CODE.OK });
  // The failure policy answers for an unavailable store.
  store.noRoom = LATE;
  expect(await ask('greedy')).toMatchObject({ overallCode: CODE.OK });
  for (const answer of store.waiting.splice(0)) answer(LATE);
  expect(await other).toMatchObject({ overallCode: CODE.OK });
  // All memory has been released.
  void ask('greedy');
  expect(store.waiting).toHaveLength(1);
});

test('large requests from any number of connections leave space for small ones, also of the same connections', () => {
  const waiting = new WaitingRequests();
  const connections = Array.from({ length: 1000 }, (_, i) => i);
  for (const connection of connections) {
    for (let bytes = 4 * MIB; bytes > 4096; bytes /= 2) {
      while (waiting.begin(bytesOf(requestOf('a', bytes)), connection) !== undefined);
    }
  }
  expect(waiting.bytes).toBeLessThan(MAX_STORE_WAITING_BYTES);
  for (const connection of connections) {
    const end = waiting.begin(bytesOf(requestOf('a', 200)), connection);
    expect(end).toBeDefined();
    end?.();
  }
  // Small requests cannot use all of the memory, either.
  for (const connection of connections) {
    for (let bytes = 3000; bytes > 200; bytes -= 100) {
      while (waiting.begin(bytesOf(requestOf('a', bytes)), connection) !== undefined);
    }
  }
  expect(waiting.bytes).toBeLessThanOrEqual(MAX_STORE_WAITING_BYTES);
});
