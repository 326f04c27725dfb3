import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { StorageError } from '../../src/limiter/bucket-store.js';
import { Announcements, MAX_BYTES, MAX_KEYS_BYTES } from '../../src/storage/redis/announcements.js';
import type { RedisBuckets } from '../../src/storage/redis/redis-buckets.js';
import { clusterBenches } from '../support/limiter/cluster-bench.js';
import { redisBenches } from '../support/limiter/test-stores.js';
import { waitFor } from '../support/process/wait-for.js';

const KEY = 'weir:1:{announcements}';

/** One process that caches denials, with what its announcements emptied. */
class Process {
  readonly forgotten: string[] = [];
  cleared = 0;
  /** Whether Redis is available. */
  isUp = true;
  nowMs = 0;
  readonly announcements: Announcements;

  constructor(redis: Pick<RedisBuckets, 'runScript' | 'connected'>) {
    const isUp = (): boolean => this.isUp && redis.connected;
    this.announcements = new Announcements({
      redis: {
        get connected() {
          return isUp();
        },
        runScript: (request) => redis.runScript(request),
      },
      denials: { forget: (keys) => this.forgotten.push(...keys), clear: () => this.cleared++ },
      pollMs: 10,
      nowMs: () => this.nowMs,
    });
  }

  async forgets(...keys: readonly string[]): Promise<void> {
    await waitFor(`${keys} to be forgotten`, () => keys.every((key) => this.forgotten.includes(key)));
  }
}

describe.each([...redisBenches(), ...clusterBenches()])('announcements in $name', (bench) => {
  let processes: Process[] = [];
  let redis: RedisBuckets;
  beforeAll(() => bench.start());
  afterEach(async () => {
    for (const { announcements } of processes) announcements.close();
    processes = [];
    await bench.reset();
  });
  afterAll(() => bench.stop());

  const open = async (): Promise<Process> => {
    redis = (await bench.open()) as unknown as RedisBuckets;
    const process = new Process(redis);
    processes.push(process);
    return process;
  };
  const run = (script: string): ReturnType<RedisBuckets['runScript']> =>
    redis.runScript({ script, key: KEY, args: [] });

  test('reach all processes, in order and once each, also the process that makes them', async () => {
    const [one, other] = [await open(), await open()];
    const keys = ['8:open-api6:tenant4:acme', 'ä" \n\u2028'];
    expect(await one.announcements.announce(keys)).toBeUndefined();
    expect(one.forgotten.slice(0, 2)).toEqual(keys);
    await other.forgets(...keys);
    await Promise.all(['a', 'b', 'c'].map((key) => one.announcements.announce([key])));
    await other.forgets('a', 'b', 'c');
    await other.announcements.announce(['last']);
    await one.forgets('last');
    expect(other.forgotten.slice(0, 6)).toEqual([...keys, 'a', 'b', 'c', 'last']);
    expect([one.cleared, other.cleared]).toEqual([0, 0]);
  });

  test('stand for all buckets if they name too many', async () => {
    const [one, other] = [await open(), await open()];
    const many = Array.from({ length: MAX_KEYS_BYTES / 4 }, (_, at) => `k${at}`);
    expect(await one.announcements.announce(many)).toBeUndefined();
    await waitFor('all buckets', () => other.cleared === 1);
    expect(other.forgotten).toEqual([]);
  });

  test('are bounded in Redis, and expire', async () => {
    const one = await open();
    for (let at = 0; at < 10; at++) {
      await one.announcements.announce([`${at} ${'x'.repeat(MAX_KEYS_BYTES - 100)}`]);
    }
    const kept = String(await run("return redis.call('MGET', KEYS[1])[1]"));
    expect(kept.length).toBeLessThanOrEqual(MAX_BYTES);
    expect([...kept.matchAll(/^\S{16} \["(\d+) x+"\]\n/gm)].map(([, at]) => at)).toEqual([
      '6',
      '7',
      '8',
      '9',
    ]);
    expect(Number(await run("return tostring(redis.call('PTTL', KEYS[1]))"))).toBeLessThanOrEqual(30_000);
  });

  test('that a process missed clear all its denials, and the next ones do not', async () => {
    const [one, other] = [await open(), await open()];
    await one.announcements.announce(['first']);
    await other.forgets('first');
    other.isUp = false;
    await run("return tostring(redis.call('DEL', KEYS[1]))");
    await one.announcements.announce(['second']);
    other.isUp = true;
    await waitFor('all buckets', () => other.cleared === 1);
    await one.announcements.announce(['third']);
    await other.forgets('third');
    expect(other.cleared).toBe(1);
    // Announcements that have expired were not missed.
    await run("return tostring(redis.call('DEL', KEYS[1]))");
    await new Promise((resolve) => setTimeout(resolve, 200));
    await one.announcements.announce(['fourth']);
    await other.forgets('fourth');
    expect(other.cleared).toBe(1);
  });

  test('that a process may have missed in a pause clear all its denials', async () => {
    const [one, other] = [await open(), await open()];
    await one.announcements.announce(['first']);
    await other.forgets('first');
    other.isUp = false;
    await one.announcements.announce(['second']);
    await run("return tostring(redis.call('DEL', KEYS[1]))");
    other.nowMs += 30_000;
    other.isUp = true;
    await waitFor('all buckets', () => other.cleared === 1);
    await one.announcements.announce(['third']);
    await other.forgets('third');
    expect(other.cleared).toBe(1);
  });

  test('that were dropped before a process read any of them clear all its denials', async () => {
    const one = await open();
    await one.announcements.announce(['read']);
    await run("return tostring(redis.call('DEL', KEYS[1]))");
    const other = await open();
    other.isUp = false;
    for (let at = 0; at < 10; at++) {
      await one.announcements.announce([`${at} ${'x'.repeat(MAX_KEYS_BYTES - 100)}`]);
    }
    other.isUp = true;
    await waitFor('all buckets', () => other.cleared > 0);
  });

  test('of a program with another format stand for all buckets', async () => {
    const one = await open();
    await run("return redis.call('SET', KEYS[1], 'nobody knows\\n\\n').ok");
    await waitFor('all buckets', () => one.cleared > 0);
    expect(await one.announcements.announce(['a'])).toBeUndefined();
  });
});

test('report that other processes could not be told, and continue afterwards', async () => {
  const replies = [new StorageError('disconnected', 'gone'), ''];
  const redis = { connected: true, runScript: async () => replies.shift() ?? '' };
  const announcements = new Announcements({ redis, denials: undefined });
  expect(await announcements.announce(['a'])).toBeInstanceOf(StorageError);
  expect(await announcements.announce(['b'])).toBeUndefined();
  announcements.close();
});
