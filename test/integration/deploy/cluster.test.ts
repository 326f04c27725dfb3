/*
 * Tests deploy/cluster: its Redis servers run as processes on 127.0.0.1 and form a cluster, with the commands and the
 * configuration of the compose file, and weir runs with its variables. Ports replace the names of containers.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { ComposeFile, ComposeProcesses } from '../../support/image/compose.js';
import { testComposeWithRedis } from '../../support/image/compose-checks.js';
import { descriptor } from '../../support/policy/decider.js';
import { freePorts } from '../../support/process/free-port.js';
import { repositoryRoot } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { BUS_OFFSET } from '../../support/redis/cluster.js';
import { type NodeLine, parseClusterNodes } from '../../support/redis/cluster-view.js';
import { commandOf } from '../../support/redis/sentinels.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';

const file = new ComposeFile(join(repositoryRoot, 'deploy/cluster'));
const PASSWORDS = { REDIS_AUTH: 'password-of-redis' };
const REDIS = [1, 2, 3, 4, 5, 6].map((number) => `redis-${number}`);
/** Tokens of a bucket, more than the requests during a failover. */
const FULL = 1_000_000;
const TENANTS = Array.from({ length: 20 }, (_, i) => `tenant=${i}`);

describe('the compose file', () => {
  test('has the services that the Envoy bootstrap names, and some nodes in REDIS_URL', () => {
    expect(Object.keys(file.services)).toEqual(['envoy', 'weir', 'form', ...REDIS, 'upstream']);
    const port = /^port (\d+)$/m.exec(file.text('redis.conf'))?.[1];
    const nodes = REDIS.map((name) => `${name}:${port}`);
    expect(file.service('weir').environment).toMatchObject({
      REDIS_TYPE: 'CLUSTER',
      REDIS_URL: nodes.slice(0, 3).join(','),
    });
    expect(file.service('form').command).toEqual(nodes);
    expect(Object.keys(file.service('form').depends_on ?? {})).toEqual(REDIS);
    expect(file.service('weir').depends_on).toEqual({
      form: { condition: 'service_completed_successfully' },
    });
  });

  testComposeWithRedis(file, Object.fromEntries(REDIS.map((name) => [name, 'REDIS_AUTH'])), ['weir', 'form']);
});

describe('as processes', () => {
  let setup: ComposeProcesses;
  let weir: WeirServer;
  let client: RlsClient;

  const linesOf = async (name: string): Promise<readonly NodeLine[]> =>
    parseClusterNodes(
      String(await commandOf(setup.portOf(name), { password: PASSWORDS.REDIS_AUTH }, ['CLUSTER', 'NODES'])),
    );
  const isMaster = async (name: string): Promise<boolean> =>
    (await linesOf(name)).some((line) => line.isMyself && line.isMaster);

  /** Makes one request for each tenant, and returns the remaining tokens. */
  const remaining = (): Promise<(number | undefined)[]> =>
    Promise.all(
      TENANTS.map(async (tenant) => {
        const { response } = await client.ask('shop', [descriptor([tenant])]);
        return response?.overallCode === CODE.OK ? response.statuses[0]?.limitRemaining : undefined;
      }),
    );

  beforeAll(async () => {
    const free = await freePorts(REDIS.length, BUS_OFFSET);
    setup = new ComposeProcesses(file, new Map(REDIS.map((name, i) => [name, free[i] ?? 0])), PASSWORDS);
    setup.start(...REDIS);
    for (const name of REDIS) {
      await waitFor(`${name} to answer`, () =>
        commandOf(setup.portOf(name), { password: PASSWORDS.REDIS_AUTH }, ['PING']).catch(() => undefined),
      );
    }
    await setup.run('form');
    const { REDIS_TYPE = '', REDIS_URL = '' } = file.service('weir').environment ?? {};
    weir = await startWeir({
      env: { REDIS_TYPE, REDIS_URL: setup.here(REDIS_URL), ...PASSWORDS },
      policy: `
domain: shop
descriptors: [{ key: tenant, rate_limit: { token_bucket: { max_tokens: ${FULL}, tokens_per_fill: 2, fill_interval: 1h } } }]
`,
    });
    client = new RlsClient(weir.grpcPort);
  });
  afterAll(async () => {
    await setup?.stop();
  });

  test('three masters share the tenants, and weir decides', async () => {
    for (const name of REDIS) expect([name, await isMaster(name)]).toEqual([name, REDIS.indexOf(name) < 3]);
    expect(await remaining()).toEqual(TENANTS.map(() => FULL - 1));
    for (const name of REDIS.slice(0, 3)) {
      const size = await commandOf(setup.portOf(name), { password: PASSWORDS.REDIS_AUTH }, ['DBSIZE']);
      expect(size).toBeGreaterThan(0);
    }
  });

  test('a replica of a dead master continues with equally full buckets', async () => {
    await setup.kill('redis-1');
    // The timeout is 3 s, plus the time for the other nodes to agree.
    const left = await waitFor('all tenants to be decided', async () => {
      const tokens = await remaining();
      return tokens.includes(undefined) ? undefined : tokens;
    });
    // A full bucket would have more tokens.
    for (const tokens of left) expect(tokens).toBeLessThan(FULL - 1);
  });

  test('the old master returns as a replica', async () => {
    setup.start('redis-1');
    await waitFor('redis-1 to follow', async () => !(await isMaster('redis-1').catch(() => true)));
    expect(await remaining()).not.toContain(undefined);
  });

  test('all nodes form the same cluster again after a restart', async () => {
    await setup.kill(...REDIS);
    setup.start(...REDIS);
    for (const name of REDIS)
      await waitFor(`${name} to answer`, () =>
        isMaster(name).then(
          () => true,
          () => false,
        ),
      );
    await setup.run('form');
    expect(await isMaster('redis-1')).toBe(false);
    // All buckets are full again.
    await waitFor('all tenants to be decided', async () => !(await remaining()).includes(undefined));
  });
});
