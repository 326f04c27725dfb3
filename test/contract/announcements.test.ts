import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { StorageError } from '../../src/limiter/bucket-store.js';
import type { RedisBackend } from '../../src/storage/redis/redis-backend.js';
import { SharedText } from '../../src/storage/redis/shared-text.js';
import { clusterBenches } from '../support/limiter/cluster-bench.js';
import { redisBenches } from '../support/limiter/test-stores.js';
import { waitFor } from '../support/process/wait-for.js';

const KEY = 'weir:1:{announcements}';
const NAMED = { name: 'announcements', readMs: 10 };

/** One process that reads announcements. */
class Process {
  readonly texts: string[] = [];
  /** Whether Redis is available. */
  isUp = true;
  readonly announcement: SharedText;

  constructor(redis: Pick<RedisBackend, 'runScript' | 'connected' | 'onUp'>) {
    const isUp = (): boolean => this.isUp && redis.connected;
    this.announcement = new SharedText({
      ...NAMED,
      redis: {
        get connected() {
          return isUp();
        },
        runScript: (request) => redis.runScript(request),
        onUp: (listener) => redis.onUp(listener),
      },
      onChange: (text) => this.texts.push(text),
    });
  }

  async reads(text: string): Promise<void> {
    await waitFor(`${text} to be read`, () => this.texts.at(-1) === text);
  }
}

describe.each([...redisBenches(), ...clusterBenches()])('announcements in $name', (bench) => {
  let processes: Process[] = [];
  let redis: RedisBackend;
  beforeAll(() => bench.start());
  afterEach(async () => {
    for (const { announcement } of processes) announcement.close();
    processes = [];
    await bench.reset();
  });

  const open = async (): Promise<Process> => {
    redis = (await bench.open()) as unknown as RedisBackend;
    const process = new Process(redis);
    processes.push(process);
    return process;
  };
  const run = (script: string): ReturnType<RedisBackend['runScript']> =>
    redis.runScript({ script, key: KEY, args: [] });

  test('reach all processes once, also the process that makes them', async () => {
    const [one, other] = [await open(), await open()];
    expect(await one.announcement.write('first null\n')).toBeUndefined();
    await Promise.all([one.reads('first null\n'), other.reads('first null\n')]);
    expect(await other.announcement.write('second null\n')).toBeUndefined();
    await Promise.all([one.reads('second null\n'), other.reads('second null\n')]);
    expect([one.texts.length, other.texts.length]).toEqual([2, 2]);
  });

  test('reach a process that was without Redis meanwhile', async () => {
    const [one, other] = [await open(), await open()];
    await one.announcement.write('first');
    await other.reads('first');
    other.isUp = false;
    await one.announcement.write('second');
    await one.reads('second');
    await one.announcement.write('third');
    await one.reads('third');
    expect(other.texts).toEqual(['first']);
    other.isUp = true;
    await other.reads('third');
  });

  test('are noticed if Redis lost them, and if an earlier version added them', async () => {
    const one = await open();
    await one.announcement.write('first null\n');
    await one.reads('first null\n');
    await run("return redis.call('SET', KEYS[1], redis.call('MGET', KEYS[1])[1] .. 'second [\"a\"]\\n').ok");
    await one.reads('first null\nsecond ["a"]\n');
    await run("return tostring(redis.call('DEL', KEYS[1]))");
    await one.reads('');
  });
});

test('an announcement that other processes may not get is an error', async () => {
  const replies = [new StorageError('disconnected', 'gone'), ''];
  const redis = { connected: true, runScript: async () => replies.shift() ?? '', onUp: () => {} };
  const announcement = new SharedText({ ...NAMED, redis });
  expect(await announcement.write('a')).toBeInstanceOf(StorageError);
  expect(await announcement.write('b')).toBeUndefined();
  announcement.close();
});
