/* Tables of plans in a hash of a real Redis. */
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { loadPolicies } from '../../../src/config/files/load-policies.js';
import { RowsThread } from '../../../src/config/sources/plan-sources.js';
import { RedisRows } from '../../../src/config/sources/redis-rows.js';
import { entries } from '../../support/policy/policies.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { redisClient } from '../../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';

const ROWS = 5000;
const MIB = 1024 * 1024;

let server: RedisServer;
let redis: Redis;
let dir: TempDir;

beforeAll(async () => {
  server = await startRedis();
  redis = redisClient(server.port);
});
beforeEach(() => {
  dir = new TempDir();
});
afterEach(async () => {
  await redis.flushall();
});

const addressOf = (hash: string): string => `redis://127.0.0.1:${server.port}/${encodeURIComponent(hash)}`;
const rowsOf = (address: string, password = '', answerMs = 10_000): RedisRows =>
  new RedisRows(address, password, answerMs);
const failed = (reason: string, message: string) => ({
  kind: 'failed',
  reason,
  message: expect.stringContaining(message),
});

function load(address: string, { bytes = [] }: Partial<RedisRows> = {}) {
  const policy = dir.write(
    'policy.yaml',
    `domain: d\nplans: { by: tenant, from: "${address}", define: { gold: { calls: 9 } } }\n` +
      'descriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: { plan: calls, default: 1 } } }]\n',
  );
  return loadPolicies([policy], { rows: new Map([[address, bytes]]) });
}

test('reads the fields of the hash as rows', async () => {
  const address = addressOf('plans: all');
  const many = Array.from({ length: ROWS }, (_, at) => [`t${at}`, 'gold']).flat();
  await redis.hset(
    'plans: all',
    ...many,
    'acme',
    '{"plan":"gold","calls":7}',
    'né"w',
    '{"calls":8}',
    'bad',
    '{',
  );
  const rows = rowsOf(address);
  expect(await rows.update()).toBe('changed');
  const { policySet, errors, warnings } = load(address, rows);
  expect(errors).toEqual([]);
  expect(warnings).toMatchObject([{ file: address, message: expect.stringContaining('not a JSON object') }]);
  const policy = policySet.domains.get('d');
  expect(policy?.plans?.rowCount).toBe(ROWS + 2);
  const limitOf = (tenant: string) =>
    policy?.match(entries(`tenant=${tenant}`)).rules[0]?.rate?.reportedLimit;
  expect(['t4321', 'acme', 'né"w', 'bad', 'x'].map(limitOf)).toEqual([9, 7, 8, 1, 1]);
});

test('reads the rows again only if the version has changed', async () => {
  const rows = rowsOf(addressOf('plans'));
  await redis.hset('plans', 'acme', 'gold');
  await redis.set('plans:version', '1');
  expect(await rows.update()).toBe('changed');
  await redis.hset('plans', 'acme', '{"calls":2}');
  expect(await rows.update()).toBe('unchanged');
  await redis.incr('plans:version');
  expect(await rows.update()).toBe('changed');
  // Without a version, weir compares the rows.
  await redis.del('plans:version');
  expect(await rows.update()).toBe('unchanged');
  await redis.hset('plans', 'acme', 'gold');
  expect(await rows.update()).toBe('changed');
});

test('a hash with too many bytes is refused, and the rows stay', async () => {
  const rows = rowsOf(addressOf('plans'));
  await redis.hset('plans', 'acme', 'gold', 'other', 'x'.repeat(100_000));
  expect(await rows.update()).toBe('changed');
  const before = rows.bytes;
  await redis.hset('plans', 'other', 'x'.repeat(130 * MIB));
  expect(await rows.update()).toEqual(failed('too_large', 'the answer has more than 128 MiB'));
  expect(rows.bytes).toBe(before);
});

test('a thread reads the rows, and another one follows if it ends', async () => {
  const rows = new RowsThread(addressOf('plans'), '');
  await redis.hset('plans', 'acme', 'gold');
  expect(await rows.update(true)).toBe('changed');
  const before = rows.bytes;
  expect(Buffer.concat(before ?? []).toString()).toBe('["acme","gold"]\n');
  const ended = rows.update(true);
  rows.close();
  expect(await ended).toEqual(failed('transfer', 'the thread that reads them ended (it was stopped)'));
  expect(await rows.update(true)).toBe('unchanged');
  expect(rows.bytes).toBe(before);
  await redis.set('plans', 'x');
  expect(await rows.update(true)).toEqual(failed('content', 'the key is not a hash, but a string'));
  rows.close();
});

test('a missing hash, another type and a wrong login change nothing', async () => {
  const rows = rowsOf(addressOf('plans'));
  expect(await rows.update()).toEqual(failed('content', 'the hash does not exist'));
  await redis.set('plans', 'x');
  expect(await rows.update()).toEqual(failed('content', 'the key is not a hash, but a string'));
  const guarded = await startRedis({ args: ['--requirepass', 'right'] });
  const address = `redis://127.0.0.1:${guarded.port}/plans`;
  const admin = redisClient(guarded.port, { password: 'right' });
  await admin.hset('plans', 'acme', 'gold');
  expect(await rowsOf(address, dir.write('wrong', 'wrong\n')).update()).toEqual(failed('login', 'WRONGPASS'));
  const own = rowsOf(address, dir.write('right', 'right\n'));
  expect(await own.update()).toBe('changed');
  await guarded.stop();
  expect(await own.update()).toEqual(failed('connection', 'ECONNREFUSED'));
});

test('a Redis that does not answer ends the attempt in time', async () => {
  await redis.hset('plans', 'acme', 'gold');
  server.pause();
  try {
    expect(await rowsOf(addressOf('plans'), '', 200).update()).toEqual(
      failed('timeout', 'the answer was not complete'),
    );
  } finally {
    server.resume();
  }
});

test('reads the hash of its database, and of no other', async () => {
  await redis.hset('plans', 'acme', 'gold');
  expect(await rowsOf(`${addressOf('plans')}?db=1`).update()).toEqual(
    failed('content', 'the hash does not exist'),
  );
  expect(await rowsOf(`${addressOf('plans')}?db=9999`).update()).toEqual(
    failed('connection', 'DB index is out of range'),
  );
  await redis.move('plans', 1);
  expect(await rowsOf(`${addressOf('plans')}?db=1`).update()).toBe('changed');
});

test('a password that Redis does not need, and one that it does not know', async () => {
  await redis.hset('plans', 'acme', 'gold');
  const password = dir.write('password', 'secret\n');
  expect(await rowsOf(addressOf('plans'), password).update()).toBe('changed');
  const renamed = await startRedis({ args: ['--rename-command', 'AUTH', ''] });
  const refused = await rowsOf(`redis://127.0.0.1:${renamed.port}/plans`, password).update();
  expect(refused).toEqual(failed('connection', 'unknown command'));
  expect(JSON.stringify(refused)).not.toContain('secret');
});

test.each([
  ['localhost', ['localhost']],
  ['127.0.0.1', []],
])('the name of the server in TLS: %s', async (host, names) => {
  const asked: string[] = [];
  const tls = createServer({ SNICallback: (name, done) => done(new Error(String(asked.push(name)))) });
  await new Promise<void>((resolve) => tls.listen(0, host, resolve));
  try {
    const { port } = tls.address() as AddressInfo;
    const address = `rediss://${host}:${port}/plans`;
    expect(await rowsOf(address).update()).toMatchObject({ kind: 'failed', reason: 'connection' });
    expect(asked).toEqual(names);
  } finally {
    await new Promise((resolve) => tls.close(resolve));
  }
});

test.each([
  ['redis://127.0.0.1:6379', 'does not contain the name of a hash'],
  ['redis://127.0.0.1:6379/plans?key=x', 'does not contain the name of a hash'],
  ['redis://user:secret@127.0.0.1/plans', 'contains a password'],
  ['redis://127.0.0.1/%ZZ', 'does not contain the name of a hash'],
  ['redis://[', 'is not a URL'],
  ['ftp://127.0.0.1/plans.csv', 'is not a URL'],
  ['https://127.0.0.1/plans.csv', 'does not read tables over HTTP any more'],
  ['HTTP://127.0.0.1/plans.csv', 'write the rows into a hash in Redis'],
])('%s is an error, and weir never asks it', (address, message) => {
  expect(load(address)).toMatchObject({
    errors: [{ message: expect.stringContaining(message) }],
    addresses: [],
  });
});
