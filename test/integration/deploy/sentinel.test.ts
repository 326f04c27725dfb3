/*
 * Tests deploy/sentinel: its Redis servers and Sentinels run as processes on 127.0.0.1, with the commands and the
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
import { commandOf } from '../../support/redis/sentinels.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';

const file = new ComposeFile(join(repositoryRoot, 'deploy/sentinel'));
const PASSWORDS = { REDIS_AUTH: 'password-of-redis', REDIS_SENTINEL_AUTH: 'password-of-sentinels' };
const REDIS = ['redis-1', 'redis-2', 'redis-3'];
const SENTINELS = ['sentinel-1', 'sentinel-2', 'sentinel-3'];

describe('the compose file', () => {
  test('has the services that the Envoy bootstrap names, and every host of REDIS_URL', () => {
    expect(Object.keys(file.services)).toEqual(['envoy', 'weir', ...REDIS, ...SENTINELS, 'upstream']);
    const port = /^port (\d+)$/m.exec(file.text('sentinel.conf'))?.[1];
    expect(file.service('weir').environment).toMatchObject({
      REDIS_TYPE: 'SENTINEL',
      REDIS_URL: ['mymaster', ...SENTINELS.map((name) => `${name}:${port}`)].join(','),
    });
  });

  const passwords = [
    ...REDIS.map((name) => [name, 'REDIS_AUTH']),
    ...SENTINELS.map((name) => [name, 'REDIS_SENTINEL_AUTH']),
  ];
  testComposeWithRedis(file, Object.fromEntries(passwords), ['weir']);
});

describe('as processes', () => {
  let setup: ComposeProcesses;
  let weir: WeirServer;
  let client: RlsClient;
  const portOf = (name: string): number => setup.portOf(name);
  const replicationOf = async (name: string): Promise<string> =>
    String(await commandOf(portOf(name), { password: PASSWORDS.REDIS_AUTH }, ['INFO', 'replication']));
  const ofSentinel = (name: string, ...command: [string, ...string[]]): Promise<unknown> =>
    commandOf(portOf(name), { password: PASSWORDS.REDIS_SENTINEL_AUTH }, command);

  /** Returns the name of the master that a Sentinel announces. */
  async function master(): Promise<string> {
    const [, port] = (await ofSentinel('sentinel-3', 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'mymaster')) as [
      string,
      string,
    ];
    return REDIS.find((name) => portOf(name) === Number(port)) ?? port;
  }

  const untilAllKnowEachOther = (): Promise<unknown> =>
    Promise.all(
      SENTINELS.map((name) =>
        waitFor(`${name} to know all`, async () => {
          const info = String(await ofSentinel(name, 'INFO', 'sentinel'));
          return info.includes('status=ok') && info.includes('slaves=2,sentinels=3');
        }),
      ),
    );

  /** Makes one request, and returns the remaining tokens. */
  async function remainingAfterOne(): Promise<number | undefined> {
    const { response } = await client.ask('shop', [descriptor(['tenant=acme'])]);
    return response?.overallCode === CODE.OK ? response.statuses[0]?.limitRemaining : undefined;
  }

  beforeAll(async () => {
    const names = [...REDIS, ...SENTINELS];
    const free = await freePorts(names.length);
    const ports = names.map((name, i) => [name, free[i] ?? 0] as const);
    setup = new ComposeProcesses(file, new Map(ports), PASSWORDS);
    setup.start(...REDIS);
    await waitFor('the replicas', async () =>
      (await replicationOf('redis-1')).includes('connected_slaves:2'),
    );
    setup.start(...SENTINELS);
    await untilAllKnowEachOther();
    const { REDIS_TYPE = '', REDIS_URL = '' } = file.service('weir').environment ?? {};
    weir = await startWeir({
      env: { REDIS_TYPE, REDIS_URL: setup.here(REDIS_URL), ...PASSWORDS },
      policy: `
domain: shop
descriptors: [{ key: tenant, rate_limit: { token_bucket: { max_tokens: 100, fill_interval: 100h } } }]
`,
    });
    client = new RlsClient(weir.grpcPort);
  });
  afterAll(async () => {
    await setup?.stop();
  });

  let next = '';

  test('weir decides', async () => {
    expect(await master()).toBe('redis-1');
    expect(await remainingAfterOne()).toBe(99);
    for (const name of ['redis-2', 'redis-3']) {
      await waitFor(`the bucket in ${name}`, async () => {
        return (await commandOf(portOf(name), { password: PASSWORDS.REDIS_AUTH }, ['DBSIZE'])) === 1;
      });
    }
  });

  test('weir continues with a replica of a dead master, whose buckets are equally full', async () => {
    await setup.kill('redis-1');
    // The timeout is 3 s, plus the time for two Sentinels to agree.
    const remaining = await waitFor('a decision', remainingAfterOne);
    // A full bucket would have 99 tokens. A call on a lost connection can have been sent twice.
    expect(remaining).toBeLessThan(99);
    expect(remaining).toBeGreaterThan(90);
    next = await waitFor('the announcement', async () => {
      const name = await master();
      return name === 'redis-1' ? undefined : name;
    });
    expect(weir.log().map(({ msg }) => msg)).toContainEqual(
      expect.stringContaining(`127.0.0.1:${portOf(next)} (master mymaster) is up`),
    );
  });

  test('the old master returns as a replica, and decides nothing with its empty memory', async () => {
    const before = (await remainingAfterOne()) ?? 0;
    setup.start('redis-1');
    await waitFor(
      'redis-1 to follow',
      async () => {
        const replication = await replicationOf('redis-1');
        return ['role:slave', `master_port:${portOf(next)}`, 'master_link_status:up'].every((one) =>
          replication.includes(one),
        );
      },
      60_000,
    );
    expect(await remainingAfterOne()).toBe(before - 1);
  });

  test('after a restart, the Sentinels remember the master', async () => {
    await setup.kill(...REDIS, ...SENTINELS);
    setup.start(...REDIS, ...SENTINELS);
    await untilAllKnowEachOther();
    expect(await master()).toBe(next);
    // All buckets are full again.
    expect(await waitFor('a decision', remainingAfterOne)).toBeGreaterThan(90);
    expect(await replicationOf('redis-1')).toContain('role:slave');
  });
});
