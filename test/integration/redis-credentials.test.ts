/* Tests logins from a file that change while weir runs, with a real Redis. */

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { CODE } from '../../src/codec/messages.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { mainRedis, perSecondRedis } from '../../src/server/store/redis-options.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { descriptor } from '../support/policy/decider.js';
import { closeLater } from '../support/process/close-later.js';
import { startProcess } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { repositoryRoot } from '../support/process/tools.js';
import { untilLogged, waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';
import { settingsOf } from '../support/weir/settings.js';
import { startWeir } from '../support/weir/weir.js';

let folder: TempDir;
let redis: RedisServer;
let admin: Redis;
let log: string[];
let faults: string[];

beforeEach(async () => {
  log = [];
  faults = [];
  folder = new TempDir();
  redis = await startRedis();
  admin = redisClient(redis.port);
});

const user = (name: string, ...passwords: string[]) =>
  admin.acl('SETUSER', name, 'on', '~*', '+@all', ...passwords);

/** Returns the users of weir's connections. */
async function users(): Promise<string[]> {
  const clients = String(await admin.client('LIST')).split('\n');
  return clients.flatMap((line) => (/ name=weir /.test(line) ? [/ user=(\S+)/.exec(line)?.[1] ?? ''] : []));
}

/** Returns the number of logins so far. */
async function logins(): Promise<number> {
  const stats = await admin.info('commandstats');
  return Number(/cmdstat_auth:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

async function moreLogins(count: number): Promise<void> {
  const before = await logins();
  await waitFor(`${count} logins`, async () => (await logins()) >= before + count);
}

function open(environment: Record<string, string>, which = mainRedis): SingleRedisStore {
  const settings = settingsOf({ REDIS_URL: `127.0.0.1:${redis.port}`, ...environment });
  const options = which(settings);
  return new SingleRedisStore({
    ...options,
    log: (level, message) => log.push(`${level}: ${message}`),
    observeFault: (fault) => faults.push(fault),
  });
}

const take = (store: SingleRedisStore) => store.take([takeItem('a', HUNDRED)], Infinity);
async function expectDecided(store: SingleRedisStore): Promise<void> {
  await waitFor('Redis', () => store.connected);
  expect(await take(store)).toMatchObject([{ overLimit: false }]);
}
const logged = (pattern: RegExp) => untilLogged(log, pattern);
const cutOff = () => admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');

/** Atomically changes the file, and returns its path. */
function print(text: string): string {
  renameSync(folder.write('new', text), folder.join('login'));
  return folder.join('login');
}

afterEach(() => {
  expect(log.join('\n')).not.toContain('s3cret');
});

describe('a file', () => {
  test('with a wrong password and then the right one logs in', async () => {
    await user('weir', '>s3cret');
    const store = open({ REDIS_AUTH_FILE: print('weir:s3cret-old') });
    await logged(/it refuses the login; check .*REDIS_AUTH_FILE/);
    expect(store.everReached).toBe(false);
    print('weir:s3cret');
    await expectDecided(store);
  });

  test('that the sidecar of the manual writes logs in', async () => {
    await user('weir', '>s3cret');
    const page = readFileSync(join(repositoryRoot, 'docs/operate/redis-login.md'), 'utf8');
    const block = page.split('```').find((text) => text.includes(' file: write-login\n')) ?? '';
    const script = folder.write('write-login', block.slice(block.indexOf('\n') + 1));
    const file = folder.join('login');
    const sidecar = startProcess('sh', [script, file, '1', 'echo', 'weir:s3cret']);
    closeLater(sidecar, () => sidecar.stop('SIGKILL'));
    await waitFor('the file', () => existsSync(file));
    await expectDecided(open({ REDIS_AUTH_FILE: file }));
    expect(await users()).toEqual(['weir']);
  });

  test('whose password rotates twice is followed under load, and at most calls in flight fail', async () => {
    await user('weir', '>s3cret0');
    const policy =
      'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: year, requests_per_unit: 100000000 } }]';
    const env = {
      REDIS_URL: `127.0.0.1:${redis.port}`,
      REDIS_AUTH_FILE: print('weir:s3cret0'),
    };
    const server = await startWeir({ policy, env });
    const client = new RlsClient(server.grpcPort);
    const codes = new Map<string, number>();
    let over = false;
    const ask = async () => {
      while (!over) {
        const { code, details, response } = await client.ask('d', [descriptor(['k=v'])]);
        const said = code === STATUS.OK ? `code ${response?.overallCode}` : `status ${code} ${details}`;
        codes.set(said, (codes.get(said) ?? 0) + 1);
      }
    };
    const load = Promise.all([ask(), ask(), ask(), ask()]);
    for (let i = 1; i <= 2; i++) {
      // Redis gets the new password first, then weir; then the old one is removed, which closes its connections.
      await user('weir', `>s3cret${i}`);
      const changed = moreLogins(1);
      print(`weir:s3cret${i}`);
      await changed;
      await user('weir', `<s3cret${i - 1}`);
      const reconnected = moreLogins(1);
      await cutOff();
      await reconnected;
    }
    over = true;
    await load;
    const failed = 'status 14 rate limit store unavailable';
    expect([`code ${CODE.OK}`, failed]).toEqual(expect.arrayContaining([...codes.keys()]));
    // Redis may have run calls in flight when it closed the two connections, so they are not sent again.
    expect(codes.get(failed) ?? 0).toBeLessThanOrEqual(8);
    expect(await users()).toEqual(['weir']);
    expect(JSON.stringify(server.log())).not.toContain('s3cret');
  });

  test('can be set separately for the second Redis', async () => {
    await user('one', '>s3cret1');
    await user('two', '>s3cret2');
    const environment = {
      REDIS_AUTH_FILE: folder.write('one', 'one:s3cret1'),
      REDIS_PERSECOND: 'true',
      REDIS_PERSECOND_URL: `127.0.0.1:${redis.port}`,
      REDIS_PERSECOND_AUTH_FILE: folder.write('two', 'two:s3cret2\n'),
    };
    await expectDecided(open(environment));
    await expectDecided(open(environment, (settings) => perSecondRedis(settings)!));
    expect((await users()).sort()).toEqual(['one', 'two']);
  });

  test('that changes logs in on the existing connection, also when Kubernetes swaps Secrets', async () => {
    await user('one', '>s3cret1');
    await user('two', '>s3cret2');
    const secret = (version: string, text: string) => {
      mkdirSync(folder.join('secret', version), { recursive: true });
      folder.write(`secret/${version}/password`, text);
      symlinkSync(version, folder.join('secret', '..new'));
      renameSync(folder.join('secret', '..new'), folder.join('secret', '..data'));
    };
    secret('..1', 'one:s3cret1');
    symlinkSync('..data/password', folder.join('secret', 'password'));
    const store = open({ REDIS_AUTH_FILE: folder.join('secret', 'password') });
    await expectDecided(store);
    expect(await users()).toEqual(['one']);
    secret('..2', 'two:s3cret2\n');
    await waitFor('the other user', async () => (await users())[0] === 'two');
    await admin.acl('DELUSER', 'one');
    await expectDecided(store);
    expect(store.connections).toMatchObject({ active: 1, opened: 1 });
  });

  test('with a login that Redis refuses keeps the connection, and the log reports it once', async () => {
    await user('weir', '>s3cret');
    const file = folder.write('password', 'weir:s3cret');
    const store = open({ REDIS_AUTH_FILE: file });
    await expectDecided(store);
    folder.write('password', 'weir:s3cret-wrong');
    await logged(
      /^warn: Redis .* refuses the new login, and the connection keeps the previous login: .*REDIS_AUTH_FILE/,
    );
    folder.write('password', 'weir:s3cret-worse');
    await waitFor('another refusal', () => faults.filter((fault) => fault === 'wrongpass').length === 2);
    await expectDecided(store);
    expect(log.filter((line) => line.includes('refuses'))).toHaveLength(1);
    expect(store.connections).toMatchObject({ active: 1, opened: 1 });
    // weir accepts the right login, and reports the next wrong one again.
    folder.write('password', 'weir:s3cret');
    await moreLogins(1);
    folder.write('password', 'weir:s3cret-wrong');
    await waitFor('a third refusal', () => log.filter((line) => line.includes('refuses')).length === 2);
  });

  test.each<[what: string, change: (file: string) => void, says: RegExp]>([
    [
      'becomes empty',
      (file) => writeFileSync(file, ''),
      /^warn: REDIS_AUTH_FILE: .* is empty; write the password into the file; the previous login stays/,
    ],
    [
      'is removed',
      (file) => rmSync(file),
      /^warn: REDIS_AUTH_FILE: cannot read .*; the previous login stays/,
    ],
  ])('that %s keeps the last login', async (_what, change, says) => {
    await user('weir', '>s3cret');
    const file = folder.write('password', 'weir:s3cret');
    const store = open({ REDIS_AUTH_FILE: file });
    await expectDecided(store);
    change(file);
    await logged(says);
    await cutOff();
    await waitFor('the loss', () => faults.includes('lost'));
    await expectDecided(store);
  });
});
