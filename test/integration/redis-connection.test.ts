/* Tests what ioredis does not do by itself, with real servers. */

import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net';
import { beforeEach, expect, jest, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { StorageError, type TakeResult } from '../../src/limiter/bucket-store.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { ignore } from '../../src/runtime/signal.js';
import { turn } from '../../src/runtime/turns.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import { MAX_UNREAD_BYTES } from '../../src/storage/redis/node/connector.js';
import { MAX_UNANSWERED_BYTES } from '../../src/storage/redis/node/redis-node.js';
import type { RedisStoreOptions } from '../../src/storage/redis/redis-store-options.js';
import { REDIS } from '../support/limiter/store-options.js';
import { takeItem } from '../support/limiter/take-items.js';
import { closeLater } from '../support/process/close-later.js';
import { freePorts } from '../support/process/free-port.js';
import { waitFor } from '../support/process/wait-for.js';
import { startPausableProxy } from '../support/redis/pausable-proxy.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';

let redis: RedisServer;
let admin: Redis;
let log: string[];

beforeEach(async () => {
  log = [];
  redis = await startRedis();
  admin = redisClient(redis.port);
});

async function open(options: Partial<RedisStoreOptions> = {}): Promise<SingleRedisStore> {
  const store = new SingleRedisStore({
    ...REDIS,
    address: parseRedisUrl(`127.0.0.1:${redis.port}`),
    log: (level, message) => log.push(`${level}: ${message}`),
    ...options,
  });
  await store.reached;
  return store;
}

/** A rate that does not refill during a test. */
const HUNDRED = tokenBucketRate(100, 100, UNIT_MICROS.year);
const take = (store: SingleRedisStore, key: string, hits = 1, deadline = Infinity) =>
  store.take([takeItem(key, HUNDRED, { hits })], deadline);
const reason = (result: TakeResult) => (result instanceof StorageError ? result.reason : 'decided');
const cutOff = () => admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closeLater(server, () => server.close());
  return (server.address() as AddressInfo).port;
}

test('a call runs once if its connection is lost before the reply, and fails immediately', async () => {
  const proxy = await startPausableProxy(redis.port);
  const store = await open({ address: parseRedisUrl(`127.0.0.1:${proxy.port}`) });
  const other = await open();
  proxy.pause('replies');
  const call = take(store, 'a');
  await waitFor('Redis to have run it', async () => {
    const [look] = (await take(other, 'a', 0)) as readonly { remaining: number }[];
    return look?.remaining === 99;
  });
  proxy.disconnect();
  proxy.resume();
  expect(await call).toMatchObject({ reason: 'disconnected' });
  await waitFor('the next connection', () => store.connected);
  expect(await take(store, 'a', 0)).toMatchObject([{ remaining: 99 }]);
});

test('a shifted reply closes the connection, and the calls on it count as lost', async () => {
  const replies: Buffer[] = [];
  let shifts = false;
  const proxy = createServer((client) => {
    const server = connect(redis.port, '127.0.0.1');
    client.pipe(server);
    for (const socket of [client, server]) socket.on('error', () => {});
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
    server.on('data', (chunk) => {
      if (shifts) client.write(replies.at(-1) as Buffer);
      shifts = false;
      replies.push(chunk);
      client.write(chunk);
    });
  });
  const faults: string[] = [];
  const address = parseRedisUrl(`127.0.0.1:${await listen(proxy)}`);
  const store = await open({ address, keysPerCall: 1, observeFault: (fault) => faults.push(fault) });
  await take(store, 'a');
  const { opened } = store.connections;
  shifts = true;
  const results = await Promise.all(['a', 'b', 'c'].map((key) => take(store, key)));
  expect(results.map(reason)).toEqual(['disconnected', 'disconnected', 'disconnected']);
  await waitFor('the next connection', () => store.connected);
  expect(store.connections).toMatchObject({ active: 1, opened: opened + 1 });
  expect(faults).toEqual(['not_redis']);
  // The last reply of the three is one too many, and may be noticed first if all replies arrive together.
  expect(log.join()).toMatch(/\((?:the script returned a reply in an unknown format|unexpected reply)\)/);
  expect(await take(store, 'a', 0)).toMatchObject([{ remaining: 98 }]);
});

test('the calls of one turn are one write', async () => {
  const store = await open({ keysPerCall: 1 });
  await take(store, 'a');
  const single = jest.spyOn(Socket.prototype, '_write');
  const combined = jest.spyOn(Socket.prototype, '_writev' as '_write');
  try {
    await Promise.all(Array.from({ length: 20 }, (_, i) => take(store, `k${i}`)));
    expect(store.calls).toBe(21);
    const isCall = ([data]: readonly unknown[]) => JSON.stringify(data).includes('evalsha');
    expect([single.mock.calls.filter(isCall).length, combined.mock.calls.filter(isCall).length]).toEqual([
      0, 1,
    ]);
  } finally {
    single.mockRestore();
    combined.mockRestore();
  }
});

test('keys with any characters are written as UTF-8', async () => {
  const store = await open({ keysPerCall: 1 });
  const keys = ['plain', 'größe', '限制'];
  await Promise.all(keys.map((key) => take(store, key)));
  const stored = (await admin.keys('*')).join();
  for (const key of keys) expect(stored).toContain(key);
});

test('calls wait beyond a bound on the memory of unanswered ones, and are sent after replies', async () => {
  const store = await open({ maxInFlight: 1_000_000, timeoutMicros: 60_000_000 });
  redis.pause();
  const long = 'x'.repeat(60_000);
  const count = Math.ceil((2 * MAX_UNANSWERED_BYTES) / long.length);
  const calls: Promise<TakeResult>[] = [];
  for (let i = 0; i < count; i++) {
    calls.push(Promise.resolve(take(store, `${i}${long}`)));
    await turn();
  }
  expect(store.calls).toBeLessThan(count);
  redis.resume();
  expect(new Set((await Promise.all(calls)).map(reason))).toEqual(new Set(['decided']));
  expect(store.calls).toBe(count);
});

test('a connection without takes stays open however much all queries together receive', async () => {
  const store = await open();
  const sent = 'x'.repeat(MAX_UNREAD_BYTES / 4);
  for (let i = 0; i < 6; i++)
    expect(await store.query((client) => client.call('ECHO', sent))).toHaveLength(sent.length);
  expect(store.connections).toMatchObject({ active: 1, opened: 1 });
});

/** Starts a server that answers like a Sentinel. */
async function fakeSentinel(onQuery: (socket: Socket) => void, onSubscription: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    closeLater(socket, () => socket.destroy());
    socket.on('data', (chunk) => {
      const command = String(chunk).toLowerCase();
      if (command.includes('get-master-addr-by-name')) onQuery(socket);
      else if (command.includes('subscribe')) {
        onSubscription(socket);
        socket.write('*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n');
      }
    });
  });
  return { host: '127.0.0.1', port: await listen(server) };
}

/** The answer of a Sentinel that names a server on this machine. */
function named(port: number): string {
  return `*2\r\n$9\r\n127.0.0.1\r\n$${String(port).length}\r\n${port}\r\n`;
}

function openWithSentinels(...sentinels: readonly { host: string; port: number }[]) {
  const address = { tls: false, db: 0, redactedAddress: 'mymaster' };
  return open({ address: { ...address, sentinel: { masterName: 'mymaster', sentinels } } });
}

test('a Sentinel that is down, hangs, or names a replica is passed over', async () => {
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(redis.port)] });
  const [nowhere = 0] = await freePorts(1);
  const store = await openWithSentinels(
    { host: '127.0.0.1', port: nowhere },
    await fakeSentinel(ignore, ignore),
    await fakeSentinel((socket) => socket.write(named(replica.port)), ignore),
    await fakeSentinel((socket) => socket.write(named(redis.port)), ignore),
  );
  expect(reason(await take(store, 'a'))).toBe('decided');
  expect(log.filter((line) => line.startsWith('error: '))).toEqual([
    expect.stringContaining("(READONLY You can't write against a read only replica"),
  ]);
});

test('a master that is announced while the Sentinels are queried is used', async () => {
  const subscribers = new Set<Socket>();
  let holdsAnswers = false;
  let heldQueries = 0;
  const sentinel = await fakeSentinel(
    (socket) => {
      if (holdsAnswers) heldQueries++;
      else socket.write(named(redis.port));
    },
    (socket) => {
      subscribers.add(socket);
      socket.on('close', () => subscribers.delete(socket));
    },
  );
  const store = await openWithSentinels(sentinel);
  await waitFor('a subscription', () => subscribers.size > 0);
  holdsAnswers = true;
  await cutOff();
  await waitFor('a query', () => heldQueries > 0);
  const text = 'mymaster 127.0.0.1 1 127.0.0.1 2';
  const announcement = `*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$${text.length}\r\n${text}\r\n`;
  for (const socket of subscribers) socket.write(announcement);
  await waitFor('the subscriptions to end', () => subscribers.size === 0);
  holdsAnswers = false;
  await waitFor('the master', () => store.connected);
  expect(reason(await take(store, 'a'))).toBe('decided');
});
