import { expect, test } from '@jest/globals';
import { StorageError, type TakeItem, type TakeResult } from '../../../../src/limiter/bucket-store.js';
import { turn } from '../../../../src/runtime/turns.js';
import { LargeTakeSender } from '../../../../src/storage/redis/large-take-sender.js';
import { RedisKeys } from '../../../../src/storage/redis/redis-key.js';
import { TakeBatch } from '../../../../src/storage/redis/take-batch.js';
import { HUNDRED, takeItem } from '../../../support/limiter/take-items.js';

function itemsOf(name: string, count: number): TakeItem[] {
  return Array.from({ length: count }, (_, i) => takeItem(`${name}${i}`, HUNDRED));
}

test('a request that expires while its call is built is not sent in part', async () => {
  const sent: TakeBatch[] = [];
  const keys = new RedisKeys('');
  const sender = new LargeTakeSender(20_000, {
    newBatch: () => new TakeBatch(keys, true, () => 0),
    hasRoomFor: () => true,
    send: (batch) => sent.push(batch),
  });
  const late = new StorageError('full', 'late');
  const results: TakeResult[] = [];
  void sender.queue.add(itemsOf('long', 600), 10, 'one', 0).then((result) => results.push(result));
  void sender.queue.add(itemsOf('next', 9), 1000, 'one', 0);
  sender.send();
  sender.building?.expire(10, late);
  for (let turns = 0; turns < 10; turns++) await turn();
  expect(results).toEqual([late]);
  expect(sent.map(({ itemCount, takeCount }) => [itemCount, takeCount])).toEqual([[9, 1]]);
  // Three integers for each item, and the time.
  expect(sent[0]?.replyLength).toBe(1 + 3 * 9);
  expect(sender.items).toBe(9);
});
