/*
 * Blocks a customer behind Envoy with the commands of docs/policy/plans.md, on the policy of that page. Both workers of
 * each weir deny the customer within the time that the page names.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import type { Server } from 'node:http';
import { delimiter } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { pageText } from '../support/docs/pages.js';
import { stepsOf } from '../support/docs/walkthrough.js';
import { fromHeader, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { startUpstream } from '../support/envoy/stack.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisCliScript } from '../support/redis/redis-cli.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { untilAllServe } from '../support/weir/workers.js';

const PAGE = 'docs/policy/plans.md';
const POLICY = stepsOf(PAGE, pageText(PAGE)).flatMap((step) =>
  'file' in step && step.file === 'plans-in-redis.yaml' ? [step.text] : [],
)[0] as string;
/** The commands of the section: those that block a customer, and those that end the block. */
const [BLOCK = '', UNBLOCK = ''] = [
  ...(pageText(PAGE).split('\n## Block a customer\n')[1]?.split('\n## ')[0] ?? '').matchAll(
    /^```sh\n(.*?)^```/gms,
  ),
].map(([, commands]) => commands);

let folder: TempDir;
let upstream: { server: Server; port: number };
let redis: RedisServer;
let weirs: WeirServer[];
let envoy: { port: number; stop(): Promise<unknown> };

/** Runs commands of the page, whose redis-cli finds this Redis. Returns their output. */
function run(commands: string): string {
  const PATH = `${folder.join('bin')}${delimiter}${process.env['PATH']}`;
  return execFileSync('sh', ['-ec', commands], { env: { ...process.env, PATH }, encoding: 'utf8' });
}

beforeAll(async () => {
  folder = new TempDir();
  redis = await startRedis();
  chmodSync(folder.write('bin/redis-cli', redisCliScript('-p', String(redis.port))), 0o755);
  run('redis-cli HSET customers mallory gold acme gold a gold b gold c gold');
  upstream = await startUpstream();
  const policy = POLICY.replace('redis.internal:6379', `127.0.0.1:${redis.port}`);
  const env = { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '2', PLANS_POLL_INTERVAL: '200ms' };
  weirs = await Promise.all([0, 1].map(() => startWeir({ policy, env })));
  await Promise.all(weirs.map(untilAllServe));
  const tenant = fromHeader('x-tenant', 'tenant');
  envoy = await startRouteEnvoy({
    domain: 'orders',
    weirPort: weirs.map(({ grpcPort }) => grpcPort),
    upstreamPort: upstream.port,
    routes: [{ path: '/', rateLimits: [{ actions: [tenant] }], place: 'virtual_host' }],
  });
});

async function statusOf(tenant: string): Promise<number> {
  return (await httpRequest(envoy.port, '/', { headers: { 'x-tenant': tenant } })).status;
}

/** Resolves when a customer has this status at Envoy and, for calls with 0 hits, in each worker. */
async function untilStatus(tenant: string, status: 200 | 429): Promise<void> {
  const code = status === 429 ? CODE.OVER_LIMIT : CODE.OK;
  const peek = { ...descriptor([`tenant=${tenant}`]), hitsAddend: 0 };
  await waitFor(`${status} for ${tenant}`, async () => {
    for (const { grpcPort } of weirs) {
      // Workers accept connections in turn.
      for (let at = 0; at < 4; at++) {
        const client = new RlsClient(grpcPort);
        const { response } = await client.ask('orders', [peek]);
        client.close();
        if (response?.overallCode !== code) return false;
      }
    }
    // Last, because these requests count.
    return (await statusOf(tenant)) === status;
  });
}

test('the page has three commands to block a customer, and two to end the block', () => {
  expect(BLOCK.trim().split('\n')).toHaveLength(3);
  expect(UNBLOCK.trim().split('\n')).toHaveLength(2);
});

test('the commands block the customer, and no other, and end the block', async () => {
  await untilStatus('mallory', 200);
  expect(run(BLOCK)).toMatch(/^gold\n/);
  await untilStatus('mallory', 429);
  expect(await statusOf('acme')).toBe(200);
  run(UNBLOCK);
  await untilStatus('mallory', 200);
});

test('a customer without a row is blocked in the same way, and HDEL ends the block', async () => {
  run(BLOCK.replaceAll('mallory', 'eve'));
  await untilStatus('eve', 429);
  run(UNBLOCK.replace(/HSET customers mallory \w+/, 'HDEL customers eve'));
  await untilStatus('eve', 200);
});

test('unlimited exempts the customer', async () => {
  run(BLOCK.replace('blocked', 'unlimited'));
  await waitFor('a request that has no limit', async () => {
    const client = new RlsClient(weirs[0]?.grpcPort as number);
    const { response } = await client.ask('orders', [descriptor(['tenant=mallory'])], { hitsAddend: 601 });
    client.close();
    return response?.overallCode === CODE.OK;
  });
});
