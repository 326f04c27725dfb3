import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { StorageError } from '../../src/limiter/bucket-store.js';
import { parseRedisUrl } from '../../src/storage/redis/redis-address.js';
import { RedisStore } from '../../src/storage/redis/redis-store.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { HUNDRED, takeItem } from '../support/take-items.js';
import { waitFor } from '../support/wait-for.js';

// Starting a Redis may take its time on a busy machine.
jest.setTimeout(60_000);

let redis: RedisServer;
let proxy: Server;
let store: RedisStore;
let log: string[];
/** What becomes of the bytes that Redis sends to weir. */
let forward: (to: Socket, chunk: Buffer) => void;
const sockets = new Set<Socket>();

beforeEach(async () => {
  redis = await startRedis();
  log = [];
  forward = (to, chunk) => to.write(chunk);
  proxy = createServer((client) => {
    const upstream = connect(redis.port, '127.0.0.1');
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.setNoDelay(true);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    client.on('data', (chunk) => upstream.write(chunk));
    upstream.on('data', (chunk) => forward(client, chunk));
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as { port: number };
  store = new RedisStore({
    address: parseRedisUrl(`127.0.0.1:${port}`),
    log: (level, message) => log.push(`${level}: ${message}`),
  });
  await store.reached;
});

afterEach(async () => {
  await store.close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => proxy.close(resolve));
  await redis.stop();
});

const hit = (key: string) => store.take([takeItem(key, HUNDRED)], Infinity);

test('replies that come byte by byte are understood, keys beyond ASCII and all', async () => {
  forward = (to, chunk) => {
    for (const byte of chunk) to.write(Buffer.of(byte));
  };
  for (let turn = 1; turn <= 5; turn++) {
    const keys = ['plain', 'caf\u00e9', '\u{1f600}', '\r\n$5'];
    const results = await Promise.all(keys.map(hit));
    expect(results).toEqual(keys.map(() => [expect.objectContaining({ limited: false })]));
  }
  // Each bucket was hit five times, which takes far less than it takes to refill five tokens.
  expect(await store.take([takeItem('caf\u00e9', HUNDRED, { hits: 97 })], Infinity)).toMatchObject([
    { limited: true },
  ]);
});

test('a reply that is none ends the connection and what waits; a new one decides on', async () => {
  await hit('a');
  forward = (to) => to.write('HTTP/1.1 400 Bad Request\r\n\r\n');
  const result = await hit('a');
  expect((result as StorageError).reason).toBe('disconnected');
  forward = (to, chunk) => to.write(chunk);
  await waitFor('a decision', async () => !((await hit('a')) instanceof StorageError));
  expect(log.some((line) => line.includes('malformed reply'))).toBe(true);
});
