/* The log and the metrics while weir polls tables of plans. */
import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { PlanSources } from '../../../src/config/sources/plan-sources.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { redisClient } from '../../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';

let server: RedisServer;
let redis: Redis;
let sources: PlanSources;
let logged: string[];
let nowMicros: number;

beforeAll(async () => {
  server = await startRedis();
  redis = redisClient(server.port);
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

test('no server gets the password of another one', async () => {
  const folder = new TempDir();
  const guarded = await Promise.all(
    ['one', 'two'].map((word) => startRedis({ args: ['--requirepass', word] })),
  );
  const [one = 0, two = 0] = guarded.map(({ port }) => port);
  const clients = guarded.map(({ port }, i) => redisClient(port, { password: i === 0 ? 'one' : 'two' }));
  const passwordFile = folder.write('passwords', 'one\n');
  const addresses = [one, two].map((port) => `redis://127.0.0.1:${port}/plans`);
  const own = new PlanSources({
    passwordFile,
    pollMs: 1,
    nowMicros: () => 0,
    log: (_level, message) => logged.push(message),
  });
  const untilLogged = (text: string) =>
    waitFor(text, () => logged.some((line) => line.includes(text) && line.includes('could not be read')));
  const lines = (...passwords: string[]) =>
    folder.write('passwords', passwords.map((line) => `127.0.0.1:${line}\n`).join(''));
  try {
    for (const client of clients) await client.hset('plans', 'acme', 'gold');
    // The file is the password of the only server.
    await own.follow(addresses.slice(0, 1));
    expect([...own.rows().keys()]).toEqual(addresses.slice(0, 1));
    // The first server keeps its rows.
    await own.follow(addresses);
    for (const port of [one, two]) {
      await untilLogged(`begins with 127.0.0.1:${port}/, and the tables are on several servers`);
    }
    expect([...own.rows().keys()]).toEqual(addresses.slice(0, 1));
    lines(`${one}/one`, `${two}/two`);
    await waitFor('both tables', () => own.rows().size === 2);
    await own.follow(addresses.slice(1));
    await clients[1]?.hset('plans', 'other', 'gold');
    await waitFor('the change', () => own.hasNewRows);
    // The file has no line of the only server.
    lines(`${one}/one`);
    await untilLogged(`begins with 127.0.0.1:${two}/, and it has passwords of other servers`);
    for (const client of clients) expect(await client.acl('LOG')).toEqual([]);
    expect(logged.join()).not.toMatch(/\/(?:one|two)\b/);
  } finally {
    own.close();
    for (const client of clients) client.disconnect();
    await Promise.all(guarded.map((redis) => redis.stop()));
    folder.remove();
  }
});
