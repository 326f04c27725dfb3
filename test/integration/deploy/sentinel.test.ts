/*
 * deploy/sentinel: its Redis and its Sentinels as processes on 127.0.0.1, started by the commands of the compose file
 * with its configuration, and a weir with its variables. Names of containers become ports.
 */
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { parse } from 'yaml';
import { CODE } from '../../../src/codec/messages.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { descriptor } from '../../support/policy/decider.js';
import { freePorts } from '../../support/process/free-port.js';
import { type StartedProcess, startProcess } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { repositoryRoot, toolPath } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { commandOf } from '../../support/redis/sentinels.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';

// The Sentinels wait seconds before they hold a master for dead, and longer until they have an old one follow.
jest.setTimeout(120_000);

const FOLDER = join(repositoryRoot, 'deploy/sentinel');
const PASSWORDS = { REDIS_AUTH: 'password-of-redis', REDIS_SENTINEL_AUTH: 'password-of-sentinels' };
const REDIS = ['redis-1', 'redis-2', 'redis-3'];
const SENTINELS = ['sentinel-1', 'sentinel-2', 'sentinel-3'];

interface Service {
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly env_file?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly restart?: string;
}

const { services } = parse(readFileSync(join(FOLDER, 'docker-compose.yaml'), 'utf8'), { merge: true }) as {
  services: Record<string, Service>;
};
const serviceOf = (name: string): Service => {
  const service = services[name];
  if (service === undefined) throw new Error(`no service ${name}`);
  return service;
};
const text = (name: string) => readFileSync(join(FOLDER, name), 'utf8');

describe('the compose file', () => {
  test('has the services whose names the Envoy bootstrap uses, and all that REDIS_URL names', () => {
    expect(Object.keys(services)).toEqual(['envoy', 'weir', ...REDIS, ...SENTINELS, 'upstream']);
    const port = /^port (\d+)$/m.exec(text('sentinel.conf'))?.[1];
    expect(serviceOf('weir').environment).toMatchObject({
      REDIS_TYPE: 'SENTINEL',
      REDIS_URL: ['mymaster', ...SENTINELS.map((name) => `${name}:${port}`)].join(','),
    });
  });

  test('mounts and builds from files that are there, and publishes on loopback only', () => {
    const mounts = Object.values(services).flatMap(({ volumes = [] }) =>
      volumes.filter((volume) => volume.includes(':')).map((volume) => volume.split(':')[0] ?? ''),
    );
    const { context = '', dockerfile = '' } = serviceOf('weir').build ?? {};
    for (const path of [...mounts, join(context, dockerfile)])
      expect([path, existsSync(join(FOLDER, path))]).toEqual([path, true]);
    const ports = Object.values(services).flatMap(({ ports: published = [] }) => published);
    expect(ports).toHaveLength(3);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:(10000|8080|8081):/);
  });

  test.each([...REDIS, ...SENTINELS])(
    '%s may do little, has a health check, and is not restarted by itself',
    (name) => {
      const { read_only, cap_drop, volumes, healthcheck, restart } = serviceOf(name);
      expect({ read_only, cap_drop, restart }).toEqual({ read_only: true, cap_drop: ['ALL'] });
      expect(volumes).toContain('/data');
      const password = name.startsWith('redis') ? 'REDIS_AUTH' : 'REDIS_SENTINEL_AUTH';
      expect(healthcheck?.test[1]).toContain(`REDISCLI_AUTH="$$${password}"`);
    },
  );

  test('passwords come from a file that no commit takes along', () => {
    for (const name of ['weir', ...REDIS, ...SENTINELS])
      expect([name, serviceOf(name).env_file]).toEqual([name, 'passwords.env']);
    const ignored = readFileSync(join(repositoryRoot, '.gitignore'), 'utf8').split('\n');
    expect(ignored).toContain('deploy/sentinel/passwords.env');
  });

  test('no Redis evicts', () => {
    expect(text('redis.conf')).toMatch(/^maxmemory-policy noeviction$/m);
  });
});

describe('as processes', () => {
  const root = new TempDir();
  const ports = new Map<string, number>();
  const started = new Map<string, StartedProcess>();
  let weir: WeirServer;
  let client: RlsClient;
  const portOf = (name: string): number => ports.get(name) ?? 0;

  /** Names of containers, with their port or without, as addresses on this machine. */
  const here = (line: string): string =>
    line
      .replaceAll(/\b((?:redis|sentinel)-\d)([ :])\d+/g, (_, name, between) => {
        return `127.0.0.1${between}${portOf(name)}`;
      })
      .replaceAll(/\b(?:redis|sentinel)-\d\b/g, '127.0.0.1');

  /** A path in the container as one here; its configuration with the ports of this machine. */
  function pathHere(service: Service, name: string, word: string): string {
    const mount = service.volumes?.map((volume) => volume.split(':')).find(([, target]) => target === word);
    if (mount === undefined) return here(word);
    const source = join(FOLDER, mount[0] ?? '');
    if (!source.endsWith('.conf')) return source;
    const configuration = here(readFileSync(source, 'utf8')).replace(/^port \d+$/m, `port ${portOf(name)}`);
    return root.write(`${name}/etc/${basename(source)}`, `${configuration}bind 127.0.0.1\n`);
  }

  function start(...names: readonly string[]): void {
    for (const name of names) {
      const service = serviceOf(name);
      const [program = '', ...words] = [...(service.entrypoint ?? []), ...(service.command ?? [])];
      const args = words.map((word) => pathHere(service, name, word));
      // Stands for the volume /data, which outlives the process.
      root.write(`${name}/data/.keep`, '');
      started.set(
        name,
        startProcess(program, args, {
          bareEnvironment: true,
          env: { ...PASSWORDS, PATH: [root.join('bin'), process.env['PATH']].join(delimiter) },
          cwd: root.join(name, 'data'),
        }),
      );
    }
  }

  const kill = (...names: readonly string[]) =>
    Promise.all(names.map((name) => started.get(name)?.stop('SIGKILL')));
  const replicationOf = async (name: string): Promise<string> =>
    String(await commandOf(portOf(name), { password: PASSWORDS.REDIS_AUTH }, ['INFO', 'replication']));
  const ofSentinel = (name: string, ...command: [string, ...string[]]): Promise<unknown> =>
    commandOf(portOf(name), { password: PASSWORDS.REDIS_SENTINEL_AUTH }, command);

  /** The name of the master that a Sentinel announces. */
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

  /** One request; the tokens that it leaves. */
  async function remainingAfterOne(): Promise<number | undefined> {
    const { response } = await client.ask('shop', [descriptor(['tenant=acme'])]);
    return response?.overallCode === CODE.OK ? response.statuses[0]?.limitRemaining : undefined;
  }

  beforeAll(async () => {
    const names = [...REDIS, ...SENTINELS];
    const free = await freePorts(names.length);
    names.forEach((name, i) => {
      ports.set(name, free[i] ?? 0);
    });
    chmodSync(root.write('bin/redis-server', `#!/bin/sh\nexec '${toolPath('redis-server')}' "$@"\n`), 0o755);
    start(...REDIS);
    await waitFor('the replicas', async () =>
      (await replicationOf('redis-1')).includes('connected_slaves:2'),
    );
    start(...SENTINELS);
    await untilAllKnowEachOther();
    const { REDIS_TYPE = '', REDIS_URL = '' } = serviceOf('weir').environment ?? {};
    weir = await startWeir({
      env: { REDIS_TYPE, REDIS_URL: here(REDIS_URL), ...PASSWORDS },
      policy: `
domain: shop
descriptors: [{ key: tenant, rate_limit: { token_bucket: { max_tokens: 100, fill_interval: 100h } } }]
`,
    });
    client = new RlsClient(weir.grpcPort);
  });
  afterAll(async () => {
    client?.close();
    await weir?.stop();
    await kill(...started.keys());
    root.remove();
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

  test('the master dies: weir goes on with a replica, whose buckets are as full', async () => {
    await kill('redis-1');
    // 3 s until it is held for dead, and what two Sentinels need to agree.
    const remaining = await waitFor('a decision', remainingAfterOne, 15_000);
    // A full bucket would leave 99. A call that was lost with a connection may have been sent twice.
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

  test('the old master comes back as a replica, and decides nothing with its empty memory', async () => {
    const before = (await remainingAfterOne()) ?? 0;
    start('redis-1');
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

  test('all of them start again: they know who the master was', async () => {
    await kill(...REDIS, ...SENTINELS);
    start(...REDIS, ...SENTINELS);
    await untilAllKnowEachOther();
    expect(await master()).toBe(next);
    // All buckets are full again.
    expect(await waitFor('a decision', remainingAfterOne)).toBeGreaterThan(90);
    expect(await replicationOf('redis-1')).toContain('role:slave');
  });
});
