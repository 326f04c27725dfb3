import { createServer, type Socket } from 'node:net';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { StorageError } from '../../src/limiter/bucket-store.js';
import type { StoreFault } from '../../src/limiter/failure-policy.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import { REDIS } from '../support/limiter/store-options.js';
import { takeItem } from '../support/limiter/take-items.js';
import { waitFor } from '../support/process/wait-for.js';
import { type PausableProxy, startPausableProxy } from '../support/redis/pausable-proxy.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';

let redis: RedisServer;
let proxy: PausableProxy;
let store: SingleRedisStore;
let log: string[];
let faults: StoreFault[];
/** Passes the bytes that Redis sends on to weir. */
let forward: (to: Socket, chunk: Buffer) => void;

beforeEach(async () => {
  redis = await startRedis();
  log = [];
  faults = [];
  forward = (to, chunk) => to.write(chunk);
  proxy = await startPausableProxy(redis.port, (to, chunk) => forward(to, chunk));
  store = new SingleRedisStore({
    ...REDIS,
    address: parseRedisUrl(`127.0.0.1:${proxy.port}`),
    log: (level, message) => log.push(`${level}: ${message}`),
    observeFault: (fault) => faults.push(fault),
  });
  await store.reached;
});

/** Does not refill during a test. */
const HUNDRED = tokenBucketRate(100, 100, UNIT_MICROS.day);
const hit = (key: string) => store.take([takeItem(key, HUNDRED)], Infinity);

test('replies that arrive byte by byte are decoded, including keys beyond ASCII', async () => {
  forward = (to, chunk) => {
    for (const byte of chunk) to.write(Buffer.of(byte));
  };
  for (let turn = 1; turn <= 5; turn++) {
    const keys = ['plain', 'caf\u00e9', '\u{1f600}', '\r\n$5'];
    const results = await Promise.all(keys.map(hit));
    expect(results).toEqual(keys.map(() => [expect.objectContaining({ overLimit: false })]));
  }
  expect(await store.take([takeItem('caf\u00e9', HUNDRED, { hits: 97 })], Infinity)).toMatchObject([
    { overLimit: true },
  ]);
});

test('an invalid reply ends the connection and its calls, and a new connection decides later ones', async () => {
  await hit('a');
  forward = (to) => to.write('HTTP/1.1 400 Bad Request\r\n\r\n');
  const result = await hit('a');
  expect((result as StorageError).reason).toBe('disconnected');
  forward = (to, chunk) => to.write(chunk);
  await waitFor('a decision', async () => !((await hit('a')) instanceof StorageError));
  const words = 'Unknown RESP type';
  expect(log.some((line) => line.includes(words))).toBe(true);
});

test('a reply of another type ends the connection, whose next replies are not trusted', async () => {
  await hit('a');
  let answerTwice: (() => void) | undefined;
  forward = (to, chunk) => {
    answerTwice = () => to.write(Buffer.concat([chunk, chunk]));
  };
  const one = hit('a');
  await waitFor('the answer', () => answerTwice !== undefined);
  forward = () => {};
  const two = store.take([takeItem('b', HUNDRED), takeItem('c', HUNDRED)], Infinity);
  await waitFor('the other call', () => store.calls === 3);
  forward = (to, chunk) => to.write(chunk);
  answerTwice?.();
  expect(await one).toMatchObject([{ overLimit: false }]);
  expect(await two).toMatchObject({ reason: 'disconnected' });
  expect(await hit('d')).toMatchObject([{ remaining: 99 }]);
  expect(faults).toEqual(['not_redis']);
  expect(store.connections.opened).toBe(2);
});

test('a script call without a reply ends when the store closes, not after its timeout', async () => {
  let isSent = false;
  forward = () => {
    isSent = true;
  };
  const reply = store.runScript({ script: "return 'late'", key: 'k', args: [] });
  await waitFor('the reply that does not arrive', () => isSent);
  const closed = store.close();
  expect(await reply).toMatchObject({ message: expect.stringContaining('was lost before the reply') });
  await closed;
});

/** Many replies without a call, in consecutive pieces. */
const FLOOD = Buffer.from(':1\r\n'.repeat(50_000));

describe('a Redis with wrong replies loses only that connection, if it', () => {
  test.each([
    ['announces a hundred million numbers', '*100000000\r\n'],
    ['sends numbers', '*3\r\n:1\r\n'],
    ['sends arrays within arrays', '*1\r\n'.repeat(1000)],
    ['sends null', '*-1\r\n'],
    ['announces a string of a gigabyte', '$1000000000\r\n'],
    ['sends a line without an end', `+${'x'.repeat(100_000)}`],
    ['sends an error without an end', `-${'x'.repeat(100_000)}`],
    ['sends a string of the wrong length', '$7\r\n1234567\r\n'],
  ])('%s', async (_, wrongReply) => {
    await hit('a');
    let closed = 0;
    let brokenSocket: Socket | undefined;
    forward = (to, chunk) => {
      if (brokenSocket !== undefined) {
        if (to !== brokenSocket) to.write(chunk);
        return;
      }
      brokenSocket = to;
      to.once('close', () => closed++);
      to.write(wrongReply);
      // The replies would continue forever.
      const more = () => {
        while (!to.destroyed && to.write(FLOOD));
      };
      to.on('drain', more);
      more();
    };
    const calls = ['a', 'b', 'c', 'd', 'e', 'f'].map(async (key, turns) => {
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      return hit(key);
    });
    await waitFor('the end of the connection', () => closed === 1);
    await Promise.all(calls);
    // No take is sent again, because each may have run.
    await waitFor('a decision', async () => !((await hit('a')) instanceof StorageError));
    expect(faults).not.toEqual([]);
  });

  test.each([
    ['announces a text of half a gigabyte', '$500000000\r\n'],
    ['sends endless errors', `-ERR ${'x'.repeat(100)}\r\n`.repeat(1000)],
  ])('%s in reply to the login', async (_, wrongReply) => {
    let greeted = 0;
    const wrongServer = createServer((client) => {
      client.on('error', () => {});
      client.once('data', () => {
        greeted++;
        client.write(wrongReply);
      });
    });
    await new Promise<void>((resolve) => wrongServer.listen(0, '127.0.0.1', resolve));
    const lines: string[] = [];
    const loginStore = new SingleRedisStore({
      ...REDIS,
      address: parseRedisUrl(`127.0.0.1:${(wrongServer.address() as { port: number }).port}`),
      log: (level, message) => lines.push(`${level}: ${message}`),
    });
    const before = process.memoryUsage();
    await waitFor('several attempts', () => greeted > 3);
    const after = process.memoryUsage();
    expect(after.heapUsed + after.external - before.heapUsed - before.external).toBeLessThan(
      64 * 1024 * 1024,
    );
    expect(loginStore.connected).toBe(false);
    // weir examines the connection for up to two seconds before it logs the reason.
    await waitFor('a line in the log', () => lines.length > 0);
    // An error that answers no call counts as the reason why Redis closes the connection.
    expect(lines).toEqual([expect.stringMatching(/[:(] ?ERR x|no answer/)]);
    await loginStore.close();
    await new Promise((resolve) => wrongServer.close(resolve));
  });
});
