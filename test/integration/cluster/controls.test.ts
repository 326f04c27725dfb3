/* Tests blocks and exemptions while their slot moves, and when its master dies. */
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { systemClock } from '../../../src/limiter/clock.js';
import { ProcessBook } from '../../support/controls/books.js';
import { control } from '../../support/controls/controls.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisCluster, startCluster } from '../../support/redis/cluster.js';
import type { ClusterNode } from '../../support/redis/cluster-node.js';
import { ClusterStores } from '../../support/redis/cluster-stores.js';

// A cluster takes seconds to start, and longer on a busy machine.
jest.setTimeout(90_000);

const KEY = 'weir:1:{controls}';
const stores = new ClusterStores();
let cluster: RedisCluster;
let books: ProcessBook[] = [];

beforeAll(async () => {
  cluster = await startCluster({ replicas: 1 });
});
afterAll(() => cluster.stop());
afterEach(async () => {
  await Promise.all(books.map(({ book }) => book.close()));
  books = [];
  await stores.close();
});

async function open(): Promise<ProcessBook> {
  const { store } = await stores.open(cluster.url);
  const one = new ProcessBook(store, systemClock);
  store.onUp(() => one.comeUp());
  books.push(one);
  return one;
}

test('controls move with their slot, and can be changed and read meanwhile', async () => {
  const [one, other] = [await open(), await open()];
  const slot = await cluster.slotOf(KEY);
  const from = await cluster.masterOf(slot);
  const to = (await cluster.masters()).find(({ id }) => id !== from.id) as ClusterNode;
  const made = ['before', 'begun', 'moved', 'after'].map((tenant) => control(tenant));
  const put = async (i: number): Promise<void> => {
    expect(await (i % 2 === 0 ? one : other).book.put(made[i] as (typeof made)[0])).toBe('done');
    for (const { heard } of [one, other]) await waitFor(`number ${i}`, () => heard.controls.size === i + 1);
  };
  await put(0);
  await cluster.beginMove(slot, to);
  await put(1);
  await cluster.moveKeys(slot, to);
  await put(2);
  await cluster.endMove(slot, to);
  await put(3);
  expect(books.flatMap(({ logged }) => logged)).toEqual([]);
});

test('controls stay in effect when their master dies and its replica takes over', async () => {
  const [one, other] = [await open(), await open()];
  const slot = await cluster.slotOf(KEY);
  const first = control('a');
  expect(await one.book.put(first)).toBe('done');
  await waitFor('the other to hear of it', () => other.heard.ids.includes(first.id));
  await cluster.waitStable();
  const dead = await cluster.killMaster(slot);
  const known = other.heard.ids;
  await cluster.successorOf(dead, slot);
  const next = control('b');
  await waitFor('the successor to keep another', async () => (await one.book.put(next)) === 'done');
  await waitFor('the other to hear of it', () => other.heard.ids.includes(next.id));
  expect(other.heard.ids).toEqual([...known, next.id].sort());
});
