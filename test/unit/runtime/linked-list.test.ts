import { expect, test } from '@jest/globals';
import { LinkedList } from '../../../src/runtime/linked-list.js';
import { RedisKeys } from '../../../src/storage/redis/redis-key.js';
import { ScriptBatch } from '../../../src/storage/redis/script-batch.js';

const call = (): ScriptBatch => new ScriptBatch(new RedisKeys(''), true, () => 0);

test('keeps items in the order in which they were added, whichever are removed', () => {
  const list = new LinkedList<ScriptBatch>();
  const [a, b, c, d] = [call(), call(), call(), call()];
  for (const one of [a, b, c, d]) list.add(one);
  expect([...list]).toEqual([a, b, c, d]);
  expect([list.delete(b), list.delete(b)]).toEqual([true, false]);
  expect([...list]).toEqual([a, c, d]);
  expect(list.delete(a)).toBe(true);
  expect([list.first, list.size, list.has(a), list.has(d)]).toEqual([c, 2, false, true]);
  list.delete(d);
  list.add(a);
  expect([...list]).toEqual([c, a]);
  list.delete(c);
  list.delete(a);
  expect([[...list], list.first, list.size]).toEqual([[], undefined, 0]);
});

test('loses items that are added to another list, and removed items refer to no others', () => {
  const [one, other] = [new LinkedList<ScriptBatch>(), new LinkedList<ScriptBatch>()];
  const [a, b, c] = [call(), call(), call()];
  for (const each of [a, b, c]) one.add(each);
  other.add(b);
  expect([[...one], [...other]]).toEqual([[a, c], [b]]);
  expect([b.before, b.after, b.list]).toEqual([undefined, undefined, other]);
  other.delete(b);
  expect(b.list).toBeUndefined();
});

test('an item may be removed and added again during an iteration', () => {
  const list = new LinkedList<ScriptBatch>();
  const [a, b, c] = [call(), call(), call()];
  for (const each of [a, b, c]) list.add(each);
  const seen: ScriptBatch[] = [];
  for (const one of list) {
    seen.push(one);
    list.delete(one);
    if (one === a) list.delete(c);
    else list.add(one);
  }
  expect(seen).toEqual([a, b]);
  expect([...list]).toEqual([b]);
});
