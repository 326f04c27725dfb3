/*
 * Rows change while a server with two workers decides. The workers read a version at different times, share the buckets
 * in Redis, and together never allow more than the largest limit in effect.
 */
import { renameSync } from 'node:fs';
import { beforeAll, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { CODE } from '../../../src/codec/messages.js';
import { expectAtMost, expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { descriptor } from '../../support/policy/decider.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { untilAllServe, workersOf } from '../../support/weir/workers.js';

jest.setTimeout(process.env['WEIR_TEST_FULL'] === undefined ? 150_000 : 600_000);

/** Connections to the server, which its workers accept in turn. */
const CONNECTIONS = 4;
/** The limit of customers without a row. */
const DEFAULT = 7;
/** The limit of blocked customers. */
const BLOCKED = 0;

const POLICY = `domain: d
plans: { by: tenant, from: rows.csv, max_drop: 100 }
descriptors:
  - key: tenant
    descriptors:
      - { key: window, rate_limit: { unit: year, requests_per_unit: { plan: n, default: ${DEFAULT} } } }
      - key: bucket
        rate_limit:
          token_bucket:
            max_tokens: { plan: n, default: ${DEFAULT} }
            tokens_per_fill: { plan: n, default: ${DEFAULT} }
            fill_interval: 8760h
`;

let redis: RedisServer;
let folder: TempDir;
let server: WeirServer;
let clients: RlsClient[];
/** Number of customers so far. Each run has its own. */
let run = 0;

beforeAll(async () => {
  redis = await startRedis();
  folder = new TempDir();
  folder.write('policy.yaml', POLICY);
  folder.write('rows.csv', 'tenant,n,blocked\nother,1,\n');
  const env = {
    CONFIG_PATH: folder.path,
    REDIS_URL: `127.0.0.1:${redis.port}`,
    WORKERS: '2',
    LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
  };
  server = await startWeir({ env });
  await untilAllServe(server);
  clients = [];
  // In sequence, because a worker has its turn once it has accepted the previous connection.
  for (let i = 0; i < CONNECTIONS; i++) {
    const client = new RlsClient(server.grpcPort);
    await client.ask('d', [descriptor(['tenant=other', 'window=x'])]);
    clients.push(client);
  }
});

/** Replaces the table at once. A signal makes the server read it without waiting for its next look at the files. */
function writeRow(customer: string, limit: number): void {
  const row = limit === BLOCKED ? `${customer},,true\n` : limit === DEFAULT ? '' : `${customer},${limit},\n`;
  renameSync(folder.write('rows.new', `tenant,n,blocked\nother,1,\n${row}`), folder.join('rows.csv'));
  process.kill(server.process.pid, 'SIGHUP');
}

/** The calls of one customer, and the hits that they were allowed. */
class Calls {
  readonly #customer: string;
  readonly #shape: string;
  /** Allowed hits. */
  allowed = 0;
  /** The largest limit that an answer named. */
  largest = 0;
  /** By how many hits more than {@link largest} were allowed. */
  excess = 0;

  constructor(customer: string, shape: string) {
    this.#customer = customer;
    this.#shape = shape;
  }

  /** Sends a call on each connection at the same time. Returns the limits that their workers know. */
  async send(hits: number): Promise<readonly number[]> {
    const one = descriptor([`tenant=${this.#customer}`, `${this.#shape}=x`]);
    const replies = await Promise.all(clients.map((client) => client.ask('d', [one], { hitsAddend: hits })));
    const limits = replies.map(({ response }) => response?.statuses[0]?.currentLimit?.requestsPerUnit ?? -1);
    for (const { response } of replies) if (response?.overallCode === CODE.OK) this.allowed += hits;
    this.largest = Math.max(this.largest, ...limits);
    this.excess = Math.max(this.excess, this.allowed - this.largest);
    return limits;
  }

  /** Sends calls until all workers know a limit. */
  async untilKnown(limit: number, hits: number): Promise<void> {
    await waitFor(`a limit of ${limit} in all workers`, async () =>
      (await this.send(hits)).every((known) => known === limit),
    );
  }
}

const step = fc.record({
  hits: fc.integer({ min: 1, max: 3 }),
  /** Number of rounds of calls after the workers know the row. */
  rounds: fc.integer({ min: 0, max: 6 }),
  /** Whether all workers read the row before it changes again. */
  waits: fc.oneof({ arbitrary: fc.constant(true), weight: 3 }, fc.constant(false)),
});
/** Different limits, so that a limit in an answer names the version that its worker knows. */
const limits = fc.uniqueArray(fc.integer({ min: BLOCKED, max: 12 }), { minLength: 2, maxLength: 5 });

test.each(['window', 'bucket'])(
  'two workers never allow more than the largest limit of a %s',
  async (shape) => {
    expect(await workersOf(server)).toHaveLength(2);
    const found = { rises: 0, falls: 0 };
    await fc.assert(
      fc.asyncProperty(limits, fc.array(step, { minLength: 5, maxLength: 5 }), async (rows, steps) => {
        const calls = new Calls(`c${run++}`, shape);
        for (const [at, limit] of rows.entries()) {
          const { hits, rounds, waits } = steps[at] as (typeof steps)[number];
          writeRow(`c${run - 1}`, limit);
          if (!waits) {
            await calls.send(hits);
            continue;
          }
          await calls.untilKnown(limit, hits);
          const before = calls.allowed;
          for (let round = 0; round < rounds; round++) await calls.send(1);
          // After a fall, the worker that reads it last may have allowed more. Then all requests are denied.
          expectAtMost(calls.allowed, Math.max(before, limit));
          if (limit > (rows[at - 1] ?? 0)) found.rises++;
          else found.falls++;
          if (shape === 'window' && rounds * CONNECTIONS >= limit)
            expectEqual(calls.allowed, Math.max(before, limit));
        }
        expectAtMost(calls.excess, 0);
      }),
      runs(15),
    );
    expect(found.rises).toBeGreaterThan(2);
    expect(found.falls).toBeGreaterThan(2);
  },
);
