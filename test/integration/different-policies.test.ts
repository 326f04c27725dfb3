/* Tests two servers on one Redis that disagree about a rule, because a changed policy reaches one of them first. */
import { writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

/** Each shape allows ten hits, and nothing refills during the test. */
const SHAPES = [
  // Has the same shape as the next one.
  'token_bucket: { max_tokens: 10, fill_interval: 876h }',
  'unit: year, requests_per_unit: 10, algorithm: token_bucket',
  'unit: year, requests_per_unit: 10',
  'unit: year, requests_per_unit: 10, allow_debt: true',
  'unit: year, requests_per_unit: 10, unit_multiplier: 30',
  'unit: month, requests_per_unit: 10, unit_multiplier: 50',
  'unit: year, requests_per_unit: 10, calendar: UTC',
  'unit: year, requests_per_unit: 10, calendar: Asia/Tokyo',
];
/** The order of the two shapes does not matter. */
const PAIRS = SHAPES.flatMap((_, i) => SHAPES.slice(i).map((_other, k) => [i, i + k] as const));
const CALLS = 32;

/** Returns a policy that gives each pair of shapes a key, with the first or the second shape of the pair. */
function policy(side: 0 | 1, domain = 'd', head = ''): string {
  const rules = PAIRS.map(
    (pair) => `  - { key: k${pair.join('x')}, rate_limit: { ${SHAPES[pair[side]]} } }\n`,
  );
  return `domain: ${domain}\n${head}descriptors:\n${rules.join('')}`;
}

async function passes(
  client: RlsClient,
  domain: string,
  key: string,
  value: string,
  limit?: object,
): Promise<boolean> {
  const { response, details } = await client.ask(domain, [descriptor([`${key}=${value}`], limit)]);
  if (response === undefined) throw new Error(details);
  return response.overallCode === CODE.OK;
}

const FILL_TIMES = ['year', 'month', 'day'].map(
  (unit) => `unit: ${unit}, requests_per_unit: 10, algorithm: token_bucket`,
);
FILL_TIMES.push(
  `${FILL_TIMES[0]}, burst: 3`,
  `${FILL_TIMES[0]}, burst: 13`,
  `${FILL_TIMES[0]}, allow_debt: true`,
);
const FILL_TIME_PAIRS = FILL_TIMES.flatMap((one, i) =>
  FILL_TIMES.slice(i).map((other, k) => ({ key: `k${i}x${i + k}`, one, other })),
);

/** Returns a policy that gives each pair of fill times a key. */
function fillTimesPolicy(side: 'one' | 'other'): string {
  const rules = FILL_TIME_PAIRS.map((pair) => `  - { key: ${pair.key}, rate_limit: { ${pair[side]} } }\n`);
  return `domain: fill-times\ndescriptors:\n${rules.join('')}`;
}

describe('two servers on one Redis', () => {
  const folder = new TempDir();
  let redis: RedisServer;
  let servers: WeirServer[];
  let clients: RlsClient[];
  beforeAll(async () => {
    redis = await startRedis();
    const start = (side: 0 | 1): Promise<WeirServer> => {
      folder.write(`${side}/shapes.yaml`, policy(side));
      folder.write(`${side}/fill-times.yaml`, fillTimesPolicy(side === 0 ? 'one' : 'other'));
      const algorithm = side === 0 ? '' : 'algorithm: token_bucket\n';
      folder.write(`${side}/overrides.yaml`, policy(0, 'overrides', algorithm));
      const env = { REDIS_URL: `127.0.0.1:${redis.port}`, CONFIG_PATH: folder.join(String(side)) };
      return startWeir({ env });
    };
    servers = await Promise.all([start(0), start(1)]);
    clients = servers.map(({ grpcPort }) => new RlsClient(grpcPort));
  });

  /** Returns the number of allowed calls; the calls alternate between the servers. */
  async function byTurns(domain: string, key: string, limit?: object): Promise<number> {
    let passed = 0;
    for (let call = 0; call < CALLS; call++) {
      if (await passes(clients[call % 2] as RlsClient, domain, key, 'turns', limit)) passed++;
    }
    return passed;
  }

  async function atOnce(domain: string, key: string): Promise<number> {
    const calls = Array.from({ length: CALLS }, (_, call) =>
      passes(clients[call % 2] as RlsClient, domain, key, 'once'),
    );
    return (await Promise.all(calls)).filter((passed) => passed).length;
  }

  test('that disagree about the shape of a rule allow at most the sum of both limits', async () => {
    const tooMany: string[] = [];
    for (const [i, j] of PAIRS) {
      const counts = [await byTurns('d', `k${i}x${j}`), await atOnce('d', `k${i}x${j}`)];
      for (const count of counts) {
        if (count > 20 || count < 10) tooMany.push(`${SHAPES[i]} | ${SHAPES[j]}: ${count} of ${CALLS}`);
        // Servers with the same shape share a bucket.
        if ((i === j || i + j === 1) && count !== 10) tooMany.push(`${SHAPES[i]}: ${count} of ${CALLS}`);
      }
    }
    expect(tooMany).toEqual([]);
  });

  test('that disagree about the fill time of a token bucket allow at most the sum, too', async () => {
    const most = (limit: string): number => Number(/burst: (\d+)/.exec(limit)?.[1] ?? 10);
    for (const { key, one, other } of FILL_TIME_PAIRS) {
      const sum = one === other ? most(one) : most(one) + most(other);
      for (const passed of [await byTurns('fill-times', key), await atOnce('fill-times', key)]) {
        const fits = passed <= sum && passed >= Math.min(most(one), most(other));
        expect([one, other, passed, fits]).toEqual([one, other, passed, true]);
      }
    }
  });

  test('that disagree about the algorithm of limit overrides allow at most the sum, too', async () => {
    expect(await byTurns('overrides', 'k0x0', { limit: { requestsPerUnit: 10, unit: 6 } })).toBe(20);
  });
});

test(
  'a reload of one server in memory admits at most what both limits hold, however often it goes to and ' +
    'fro',
  async () => {
    const server = await startWeir({ policy: policy(0), env: { RUNTIME_WATCH_ROOT: 'true' } });
    const client = new RlsClient(server.grpcPort);
    const passed = PAIRS.map(() => 0);
    const askAll = async (): Promise<void> => {
      for (let call = 0; call < CALLS / 4; call++) {
        await Promise.all(
          PAIRS.map(async ([i, j], at) => {
            if (await passes(client, 'd', `k${i}x${j}`, 'x')) passed[at] = (passed[at] as number) + 1;
          }),
        );
      }
    };
    const reloads = (): number => server.log().filter(({ msg }) => String(msg) === 'policy reloaded').length;
    await askAll();
    for (const side of [1, 0, 1] as const) {
      const before = reloads();
      writeFileSync(server.policyPath as string, policy(side));
      await waitFor('the reload', () => reloads() > before);
      await askAll();
    }
    passed.forEach((count, at) => {
      const [i, j] = PAIRS[at] as readonly [number, number];
      expect([SHAPES[i], SHAPES[j], count <= (i === j ? 10 : 20)]).toEqual([SHAPES[i], SHAPES[j], true]);
    });
  },
);
