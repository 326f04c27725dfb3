import { beforeAll, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import { SharedText } from '../../src/storage/redis/shared-text.js';
import { REDIS } from '../support/limiter/store-options.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';

let server: RedisServer;
let admin: Redis;
const stores: SingleRedisStore[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = redisClient(server.port);
});

/** A process with a secret of its own, which it replaces with the shared one. */
class Process {
  secret: string;
  readonly shared: SharedText;

  constructor(secret: string, readMs = 100) {
    this.secret = secret;
    const redis = new SingleRedisStore({ ...REDIS, address: parseRedisUrl(`127.0.0.1:${server.port}`) });
    stores.push(redis);
    this.shared = new SharedText({
      redis,
      name: 'secret',
      readMs,
      initial: () => this.secret,
      onChange: (text) => {
        this.reads++;
        this.secret = text;
      },
    });
  }

  reads = 0;
}

test('a process reads the secret as soon as it has connected', async () => {
  await admin.set('weir:1:{secret}', 'known');
  const late = new Process('own', 3_600_000);
  await waitFor('the read', () => late.secret === 'known');
  late.shared.close();
  await admin.flushall();
});

test('all processes use the secret of the first one, and restore it if Redis has lost it', async () => {
  const first = new Process('first');
  await waitFor('the first read', () => first.reads > 0);
  const second = new Process('second');
  await waitFor('the second read', () => second.reads > 0);
  expect([first.secret, second.secret]).toEqual(['first', 'first']);
  expect(await admin.ttl('weir:1:{secret}')).toBe(-1);
  await admin.flushall();
  const third = new Process('third');
  await waitFor('the third read', () => third.reads > 0);
  // The first read after the loss restores the secret of its process.
  await waitFor('all to agree', () => new Set([first, second, third].map(({ secret }) => secret)).size === 1);
  expect(await admin.get('weir:1:{secret}')).toBe(third.secret);
  // A process that reads again after it has lost its connection follows the others.
  await server.kill();
  await server.restart();
  await admin.set('weir:1:{secret}', 'other');
  await waitFor('the read after the restart', () => second.secret === 'other');
  for (const { shared } of [first, second, third]) shared.close();
});
