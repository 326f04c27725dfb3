/* The log and the metrics while weir polls tables of plans. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { PlanSources } from '../../../src/config/sources/plan-sources.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';

let server: RedisServer;
let redis: Redis;
let sources: PlanSources;
let logged: string[];
let nowMicros: number;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port, '127.0.0.1');
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});
beforeEach(async () => {
  await redis.flushall();
  await redis.hset('plans', 'acme', 'gold');
  logged = [];
  nowMicros = 0;
  sources = new PlanSources({
    passwordFile: '',
    pollMs: 1,
    nowMicros: () => nowMicros,
    log: (_level, message) => logged.push(message),
  });
});
afterEach(() => sources.close());

const address = (database = 0): string => `redis://127.0.0.1:${server.port}/plans?db=${database}`;
const shown = (): string => `redis://127.0.0.1:${server.port}/plans`;
const failures = (): number => [...sources.failures()].reduce((sum, [, , count]) => sum + count, 0);
const untilFails = (count: number): Promise<unknown> => {
  const enough = failures() + count;
  return waitFor(`${count} failures`, () => failures() > enough);
};

test('logs each reason for failures once, until the table can be read again', async () => {
  await redis.del('plans');
  await sources.follow([address()]);
  await untilFails(3);
  await redis.set('plans', 'a string');
  await untilFails(3);
  await redis.del('plans');
  await untilFails(3);
  const reasons = ['does not exist', 'but a string'].map((reason) => expect.stringContaining(reason));
  expect(logged).toEqual(reasons);
  expect(logged[0]).toContain('has no rows from there yet');
  await redis.hset('plans', 'acme', 'gold');
  await waitFor('the table', () => logged.length > 2);
  expect(logged).toEqual([...reasons, expect.stringContaining('can be read again')]);
  await redis.del('plans');
  await waitFor('the next failure', () => logged.length > 3);
  expect(logged[3]).toContain('uses the last rows meanwhile');
});

test('addresses that differ only in their databases are one source of the metrics, with the oldest rows', async () => {
  await redis.copy('plans', 'plans', 'DB', 1);
  await sources.follow([address(0), address(1)]);
  await redis.select(1);
  await redis.del('plans');
  await redis.select(0);
  await untilFails(3);
  nowMicros = 7_000_000;
  await untilFails(10);
  expect([...sources.ages()]).toEqual([[shown(), 7]]);
  // A poll may have found the hash before it was deleted, and lost it later.
  const found = [...sources.failures()].filter(([, reason]) => reason !== 'transfer');
  expect(found).toMatchObject([[shown(), 'content', expect.anything()]]);
});

test('calls back for changed rows only', async () => {
  let changes = 0;
  sources.onChange = () => changes++;
  await sources.follow([address()]);
  expect([changes, sources.hasNewRows]).toEqual([1, true]);
  await sources.loadWithRows(async () => ({ addresses: [address()] }));
  expect(sources.hasNewRows).toBe(false);
  await redis.hset('plans', 'acme', 'silver');
  await waitFor('the change', () => sources.hasNewRows);
  expect(changes).toBe(2);
  const rows = Buffer.concat(sources.rows().get(address()) ?? []).toString();
  expect(rows).toBe('["acme","silver"]\n');
});
