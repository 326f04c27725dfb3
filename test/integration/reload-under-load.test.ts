/* Changes policies during constant traffic: every answer belongs to one version, and every version occurs. */
import { renameSync, symlinkSync } from 'node:fs';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { workersOf } from '../support/weir/workers.js';

/** Enough rules that a load takes longer than a request. */
const RULES = 600;
const FLIPS = 4;

let dir: TempDir;
let redis: RedisServer | undefined;
let server: WeirServer;
let client: RlsClient;

/** The first and the last rule have the same limit, which identifies the version. */
function policyText(limit: number): string {
  const nodes = Array.from(
    { length: RULES },
    (_, i) => `  - { key: k, value: v${i}, rate_limit: { unit: year, requests_per_unit: ${limit} } }`,
  );
  return `domain: d\ndescriptors:\n${nodes.join('\n')}\n`;
}

/** Writes a release, and puts it in effect atomically. */
function publish(limit: number): void {
  dir.write(`release-${limit}/config/first.yaml`, policyText(limit));
  // This domain never changes, in contrast to the other one.
  dir.write(
    `release-${limit}/config/same.yaml`,
    'domain: same\ndescriptors: [{ key: k, rate_limit: { unlimited: true } }]\n',
  );
  symlinkSync(`release-${limit}`, dir.join('next'));
  renameSync(dir.join('next'), dir.join('current'));
}

const REQUEST = [descriptor(['k=v0']), descriptor([`k=v${RULES - 1}`])];

/** Returns the limits in one answer. */
async function ask(): Promise<readonly (number | undefined)[]> {
  const { code, response } = await client.ask('d', REQUEST);
  expect({ code, overall: response?.overallCode }).toEqual({ code: STATUS.OK, overall: CODE.OK });
  return (response?.statuses ?? []).map(({ currentLimit }) => currentLimit?.requestsPerUnit);
}

describe.each([
  ['one process', 1],
  ['two workers', 2],
])('%s', (_name, workers) => {
  beforeAll(async () => {
    dir = new TempDir();
    redis = workers === 1 ? undefined : await startRedis();
    publish(1_000_000);
    server = await startWeir({
      env: {
        RUNTIME_ROOT: dir.join('current'),
        ...(redis && { WORKERS: String(workers), REDIS_URL: `127.0.0.1:${redis.port}` }),
      },
    });
    // Waits for all workers, because a worker that exits while others start ends the start.
    await server.process.waitForLine(/weir serves/);
  });
  beforeEach(() => {
    client = new RlsClient(server.grpcPort);
  });

  test('no decision uses half a policy', async () => {
    const seen = new Set<number | undefined>();
    let done = false;
    const asking = Array.from({ length: 4 }, async () => {
      while (!done) {
        const [first, last] = await ask();
        expect(last).toBe(first);
        seen.add(first);
      }
    });
    const flipping = async (): Promise<void> => {
      await waitFor('the first version', () => seen.size === 1, 60_000);
      for (let limit = 1_000_001; limit <= 1_000_000 + FLIPS; limit++) {
        publish(limit);
        // Instead of waiting for the next look at the files.
        process.kill(server.process.pid, 'SIGHUP');
        await waitFor(`version ${limit}`, () => seen.has(limit) || undefined, 60_000);
      }
    };
    try {
      await Promise.race([flipping(), Promise.all(asking)]);
    } finally {
      done = true;
      await Promise.allSettled(asking);
    }
    expect(seen.size).toBe(FLIPS + 1);
    const other = await client.ask('same', [descriptor(['k=x'])]);
    expect(other.response?.statuses[0]?.code).toBe(CODE.OK);
  });

  if (workers === 1) return;
  test('a worker that starts while policies change has the complete latest policy', async () => {
    for (const { pid } of await workersOf(server)) process.kill(pid, 'SIGKILL');
    publish(2_000_000);
    await waitFor(
      'the policy of the new workers',
      async () => {
        client.close();
        client = new RlsClient(server.grpcPort);
        const { response } = await client.ask('d', [descriptor(['k=v0'])], { timeoutMs: 5000 });
        return response?.statuses[0]?.currentLimit?.requestsPerUnit === 2_000_000;
      },
      90_000,
    );
  });
});
