/*
 * The first edition of weir (docs/versions.md) and this version share a Redis, as during an upgrade. No call fails, and
 * both together stay within the limits, whatever the other one has stored.
 */
import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { CODE, type Descriptor, type RateLimitResponse } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { bucketsAnswer } from '../support/weir/buckets.js';
import { buildFirstEdition, firstEditionMissing } from '../support/weir/first-edition.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

// Building the first edition takes up to a minute.
jest.setTimeout(180_000);

/** Nothing refills and no window ends during the test. `fills`: the hours in which a bucket of the last rule fills. */
const policy = (fills: number): string => `
domain: d
descriptors:
  - { key: bucket, rate_limit: { token_bucket: { max_tokens: 100, fill_interval: 876h } } }
  - { key: thirds, rate_limit: { token_bucket: { max_tokens: 100, tokens_per_fill: 3, fill_interval: 8000h } } }
  - { key: window, rate_limit: { unit: year, requests_per_unit: 100 } }
  - { key: list, rate_limits: [{ name: a, unit: year, requests_per_unit: 100 }, { name: b, token_bucket: { max_tokens: 60, fill_interval: 876h } }] }
  - { key: owing, rate_limit: { allow_debt: true, token_bucket: { max_tokens: 100, fill_interval: 876h } } }
  - { key: owing-window, rate_limit: { allow_debt: true, unit: year, requests_per_unit: 100 } }
  - { key: slots, rate_limit: { concurrency: { max: 10, expires_after: 1h } } }
  - { key: held-bucket, rate_limit: { token_bucket: { max_tokens: 100, fill_interval: 876h }, hold: { amount: 20 } } }
  - { key: held-window, rate_limit: { unit: year, requests_per_unit: 100, hold: { amount: 20 } } }
  - { key: share, rate_limit: { on_store_failure: { local: 0.5 }, token_bucket: { max_tokens: 40, fill_interval: 876h } } }
  - { key: candidate, rate_limit: { token_bucket: { max_tokens: 10, fill_interval: 876h } }, candidate: { token_bucket: { max_tokens: 3, fill_interval: 876h } } }
  - { key: changed, rate_limit: { token_bucket: { max_tokens: 10, fill_interval: ${fills}h } } }
`;
const HOURS = { small: 10, large: 1000 };
/** Maximum number of calls to a bucket. */
const CALLS = 240;

/** A server with a connection to it. */
interface Server {
  readonly weir: WeirServer;
  readonly client: RlsClient;
}

const missing = firstEditionMissing();

(missing === undefined ? describe : describe.skip)(
  `the first edition and this version on one Redis${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    const folder = new TempDir();
    let main: string;
    let redis: RedisServer;
    let admin: Redis;
    /** The first edition and this version, with the smaller and the larger last limit. */
    let first: Server;
    let firstLarge: Server;
    let now: Server;
    let nowLarge: Server;
    const servers = (): readonly Server[] => [first, now, firstLarge, nowLarge];

    beforeAll(async () => {
      main = buildFirstEdition(folder);
      redis = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
      admin = redisClient(redis.port);
      const start = async (hours: number, older: boolean): Promise<Server> => {
        const env = { REDIS_URL: `127.0.0.1:${redis.port}`, DENY_CACHE_MAX_AGE: '0s' };
        const weir = await startWeir({ policy: policy(hours), env, ...(older && { main }) });
        return { weir, client: new RlsClient(weir.grpcPort) };
      };
      [first, now, firstLarge, nowLarge] = await Promise.all([
        start(HOURS.small, true),
        start(HOURS.small, false),
        start(HOURS.large, true),
        start(HOURS.large, false),
      ]);
    });

    /** Sends one descriptor. Throws if the call fails. */
    async function ask(
      { client }: Server,
      entry: string,
      more: Partial<Descriptor> = {},
    ): Promise<RateLimitResponse> {
      const { response, details } = await client.ask('d', [descriptor([entry], more)], { timeoutMs: 10_000 });
      if (response === undefined) throw new Error(`${entry}: ${details}`);
      return response;
    }
    const isAllowed = (response: RateLimitResponse): boolean => response.overallCode === CODE.OK;
    const left = async (server: Server, entry: string): Promise<number | undefined> =>
      (await ask(server, entry, { hitsAddend: 0 })).statuses[0]?.limitRemaining;

    /** Sends requests to the servers in turn. Returns the number of allowed ones. */
    async function passed(entry: string, by: readonly Server[], calls = CALLS): Promise<number> {
      let count = 0;
      for (let call = 0; call < calls; call++) {
        if (isAllowed(await ask(by[call % by.length] as Server, entry))) count++;
      }
      return count;
    }

    /** Returns the stored value of the bucket whose name ends in a value. */
    async function stored(value: string): Promise<string | null> {
      const keys = (await admin.keys('*')).filter((key) => key.includes(value));
      expect(keys).toHaveLength(1);
      return admin.get(keys[0] as string);
    }

    test.each([
      ['bucket', 100],
      ['thirds', 100],
      ['window', 100],
      ['list', 60],
      ['owing', 100],
      ['owing-window', 100],
      ['candidate', 10],
    ] as const)('allow the limit of %s together', async (key, limit) => {
      expect(await passed(`${key}=turns`, [first, now])).toBe(limit);
      // Both read what the other one has stored, also in calls that are sent together.
      const both = await Promise.all(
        Array.from({ length: CALLS }, (_, call) => ask([first, now][call % 2] as Server, `${key}=once`)),
      );
      expect(both.filter(isAllowed)).toHaveLength(limit);
    });

    test.each(['bucket', 'window', 'owing', 'owing-window'])(
      'refund hits of the other one to %s',
      async (key) => {
        const entry = `${key}=refunds`;
        for (const [taker, giver] of [
          [first, now],
          [now, first],
        ] as const) {
          expect(await passed(entry, [taker], 30)).toBe(30);
          await ask(giver, entry, { hitsAddend: 30, isNegativeHits: true });
          expect([await left(first, entry), await left(now, entry)]).toEqual([100, 100]);
        }
      },
    );

    test.each(['owing', 'owing-window'])('pay the debts of the other one in %s', async (key) => {
      for (const [debtor, payer] of [
        [first, now],
        [now, first],
      ] as const) {
        const entry = `${key}=${debtor === first ? 'first' : 'now'}`;
        expect(isAllowed(await ask(debtor, entry, { hitsAddend: 130 }))).toBe(true);
        expect(await passed(entry, [payer, debtor], 10)).toBe(0);
        await ask(payer, entry, { hitsAddend: 40, isNegativeHits: true });
        expect(await passed(entry, [payer, debtor], 20)).toBe(10);
      }
    });

    test.each([
      ['slots', 10],
      ['held-bucket', 5],
      ['held-window', 5],
    ] as const)('end the holds of the other one in %s', async (key, most) => {
      const start = async (server: Server, entry: string): Promise<string | undefined> => {
        const token = (await ask(server, entry)).dynamicMetadata?.['hold'];
        return token === undefined ? undefined : String(token);
      };
      const end = (server: Server, token: string, used: number): Promise<RateLimitResponse> =>
        ask(server, `hold=${token}`, { hitsAddend: used });
      const entry = `${key}=holds`;
      const tokens: string[] = [];
      for (let call = 0; call < 2 * most; call++) {
        const token = await start([first, now][call % 2] as Server, entry);
        if (token !== undefined) tokens.push(token);
      }
      expect(tokens).toHaveLength(most);
      // Each hold ends at the other server. A second end changes nothing.
      for (const [i, token] of tokens.entries()) {
        const [other, own] = i % 2 === 0 ? [now, first] : [first, now];
        await end(other, token, 0);
        await end(own, token, 0);
      }
      const all = key === 'slots' ? 10 : 100;
      expect([await left(first, entry), await left(now, entry)]).toEqual([all, all]);
    });

    test('hold no more than the limit and what the first edition grants above it', async () => {
      const grant = async (entry: string): Promise<void> => {
        const [key = '', value = ''] = entry.split('=');
        const question = { action: 'grant', domain: 'd', entries: [{ key, value }], tokens: 50, over: true };
        expect((await bucketsAnswer(first.weir, question)).status).toBe(200);
      };
      for (const key of ['bucket', 'thirds', 'window', 'owing', 'owing-window']) {
        await grant(`${key}=alone`);
        expect(await stored('alone')).toMatch(/^[og]1:/);
        // This version reads the bucket as full.
        expect(await left(now, `${key}=alone`)).toBe(100);
        expect(await passed(`${key}=alone`, [now, now, first])).toBe(100);
        await admin.del(...(await admin.keys('*alone*')));
        await grant(`${key}=both`);
        const count = await passed(`${key}=both`, [first, now]);
        expect(count).toBeGreaterThanOrEqual(100);
        expect(count).toBeLessThanOrEqual(150);
      }
      const grants = { action: 'grant', domain: 'd', entries: [{ key: 'bucket', value: 'x' }], tokens: 50 };
      expect(await bucketsAnswer(now.weir, { ...grants, over: true })).toMatchObject({ status: 400 });
    });

    test('keep within both limits while they differ, and read a bucket with levels as its deepest', async () => {
      const entry = (name: string): string => `changed=${name}`;
      // The first edition stores two levels.
      expect(await passed(entry('levels'), [firstLarge], 10)).toBe(10);
      expect(await passed(entry('levels'), [first], 1)).toBe(0);
      expect(await stored('levels')).toMatch(/^l1:/);
      expect(await passed(entry('levels'), [nowLarge, now, firstLarge, first], 40)).toBe(0);
      // A refund writes a single level, which the first edition reads.
      await ask(nowLarge, entry('levels'), { hitsAddend: 4, isNegativeHits: true });
      expect(await stored('levels')).toMatch(/^t1:/);
      expect(await passed(entry('levels'), [first, firstLarge, now, nowLarge], 40)).toBe(4);
      // In any order, each limit allows at most its own tokens, and both together at most the sum.
      for (const order of [
        servers(),
        [now, firstLarge],
        [first, nowLarge],
        [nowLarge, now, first, firstLarge],
      ]) {
        const name = `order${order.map((one) => servers().indexOf(one)).join('')}`;
        const count = await passed(entry(name), order);
        expect([name, count >= 10 && count <= 20]).toEqual([name, true]);
      }
      // Two servers of this version never allow more than the larger limit, here an equal number of tokens.
      expect(await passed(entry('this'), [now, nowLarge])).toBeLessThanOrEqual(20);
    });

    test('replace each other one by one, up and back, under load and without a failed call', async () => {
      const env = {
        REDIS_URL: `127.0.0.1:${redis.port}`,
        DENY_CACHE_MAX_AGE: '0s',
        SHUTDOWN_DRAIN_DELAY: '2s',
      };
      const start = async (older: boolean): Promise<Server> => {
        const weir = await startWeir({ policy: policy(HOURS.small), env, ...(older && { main }) });
        return { weir, client: new RlsClient(weir.grpcPort) };
      };
      const endpoints = [await start(true), await start(true)];
      const failures: (string | undefined)[] = [];
      const passedOf = new Map([
        ['bucket=upgrade', 0],
        ['window=upgrade', 0],
      ]);
      let calls = 0;
      let isOver = false;
      const load = async (entry: string, from: number): Promise<void> => {
        for (let call = from; !isOver; call++) {
          const { client } = endpoints[call % endpoints.length] as Server;
          const { response, details } = await client.ask('d', [descriptor([entry])], { timeoutMs: 10_000 });
          calls++;
          if (response === undefined) failures.push(details);
          else if (isAllowed(response)) passedOf.set(entry, (passedOf.get(entry) as number) + 1);
        }
      };
      const callers = [...passedOf.keys()].flatMap((entry) => [load(entry, 0), load(entry, 1)]);
      for (const older of [false, true]) {
        for (const old of [...endpoints]) {
          endpoints.push(await start(older));
          const stopped = old.weir.stop();
          // A Service removes an endpoint after its readiness probe has failed, and callers use it until then.
          await waitFor('the drain', async () => {
            const { status } = await httpRequest(old.weir.httpPort, '/healthcheck');
            return status === 200 ? undefined : true;
          });
          endpoints.splice(endpoints.indexOf(old), 1);
          expect(await stopped).toEqual({ code: 0, signal: null });
          const before = calls;
          await waitFor('more calls', () => calls > before + CALLS || undefined);
        }
      }
      isOver = true;
      await Promise.all(callers);
      expect(failures).toEqual([]);
      expect([...passedOf.values()]).toEqual([100, 100]);
    });

    test('log no errors', () => {
      for (const { weir } of servers())
        expect(weir.log().filter(({ level }) => level === 'error')).toEqual([]);
    });

    test('enforce their shares without Redis, and the limit afterwards', async () => {
      const entry = 'share=x';
      await redis.kill();
      const decidesAlone = async (server: Server): Promise<true | undefined> => {
        const { response } = await server.client.ask('d', [descriptor(['bucket=probe'])], {
          timeoutMs: 10_000,
        });
        return response === undefined || undefined;
      };
      for (const server of [first, now]) await waitFor('the loss', () => decidesAlone(server));
      expect([await passed(entry, [first], 60), await passed(entry, [now], 60)]).toEqual([20, 20]);
      await redis.restart();
      for (const server of [first, now]) {
        await waitFor('Redis', async () => (await decidesAlone(server)) === undefined || undefined);
      }
      // The first edition charges Redis for what it allowed.
      await waitFor('the charge', async () => (await left(now, entry)) === 20 || undefined);
      expect(await passed(entry, [first, now], 60)).toBe(20);
    });
  },
);
