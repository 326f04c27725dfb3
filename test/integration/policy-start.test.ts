/* Tests where a starting server finds its policies, and how it handles invalid policies. */
import { mkdirSync, rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { openPolicies } from '../../src/server/policies/open-policies.js';
import { StartError } from '../../src/server/start-error.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { openPoliciesOf } from '../support/policy/open-policies.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const openInProcess = (env: NodeJS.ProcessEnv) => openPoliciesOf(env, openPolicies);

let dir: TempDir;
let server: WeirServer | undefined;
let opened: Awaited<ReturnType<typeof openInProcess>> | undefined;
beforeEach(() => {
  dir = new TempDir();
});
afterEach(() => {
  opened?.provider.close();
  [server, opened] = [undefined, undefined];
});

interface Detail {
  readonly status: string;
  readonly policy: {
    readonly domains: readonly { domain: string; state: string }[];
    readonly lastReload: string;
  };
}

async function detail(): Promise<Detail> {
  const { body } = await httpRequest((server as WeirServer).httpPort, '/healthcheck?detail');
  return JSON.parse(body) as Detail;
}

/** Returns the domains in effect. */
async function domains(): Promise<string> {
  const known = opened?.provider.domains() ?? (await detail()).policy.domains;
  return known.flatMap(({ domain, state }) => (state === 'absent' ? [] : [domain])).join();
}

const untilDomains = (expected: string): Promise<unknown> =>
  waitFor(`the domains ${expected}`, async () => (await domains()) === expected || undefined);

/** Opens policies that must be refused, and returns the reasons. */
async function refused(env: NodeJS.ProcessEnv): Promise<string> {
  const error = await openInProcess(env).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StartError);
  return (error as StartError).lines.join('\n').replaceAll(dir.path, '');
}

test("the reference's variables, as Istio's sample sets them", async () => {
  dir.write('ratelimit/config/config.yaml', 'domain: a\n');
  dir.write('ratelimit/config/.hidden', 'no policy');
  opened = await openInProcess({
    RUNTIME_ROOT: dir.path,
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    RUNTIME_WATCH_ROOT: 'false',
    RUNTIME_IGNOREDOTFILES: 'true',
    USE_STATSD: 'false',
  });
  expect(await domains()).toBe('a');
  dir.write('ratelimit/config/more', 'domain: b\n');
  await untilDomains('a,b');
});

test('MERGE_DOMAIN_CONFIG decides whether two files can contain one domain', async () => {
  for (const key of ['x', 'y']) {
    dir.write(
      `config/${key}`,
      `domain: a\ndescriptors: [{ key: ${key}, rate_limit: { unlimited: true } }]\n`,
    );
  }
  const env = { RUNTIME_ROOT: dir.path };
  expect(await refused(env)).toMatch(/MERGE_DOMAIN_CONFIG/);
  opened = await openInProcess({ ...env, MERGE_DOMAIN_CONFIG: 'true' });
  expect(await domains()).toBe('a');
});

test('DEFAULT_ALGORITHM makes windows and limit overrides token buckets, also after a reload', async () => {
  const rule = 'rate_limit: { unit: hour, requests_per_unit: 2 }';
  dir.write('a.yaml', `domain: a\ndescriptors: [{ key: k, ${rule} }]\n`);
  server = await startWeir({ env: { CONFIG_PATH: dir.path, DEFAULT_ALGORITHM: 'TOKEN_BUCKET' } });
  const { debugPort, grpcPort } = server;
  const tree = async (): Promise<string> => (await httpRequest(debugPort, '/rlconfig?format=tree')).body;
  expect(await tree()).toContain('  k: token bucket: 2 tokens, 2 every 1h;');
  const client = new RlsClient(grpcPort);
  const limit = { requestsPerUnit: 4, unit: 3 };
  const { response } = await client.ask('a', [descriptor(['any=x'], { limit })]);
  // One of four tokens refills within a quarter of an hour; a window ends with the hour.
  expect(response?.statuses[0]).toMatchObject({ limitRemaining: 3, durationUntilResetSeconds: 900 });
  dir.write('a.yaml', `domain: a\ndescriptors: [{ key: k, ${rule} }, { key: new, ${rule} }]\n`);
  const shown = await waitFor('the new rule', async () => {
    const text = await tree();
    return text.includes('  new: ') ? text : undefined;
  });
  expect(shown).toContain('  new: token bucket: 2 tokens, 2 every 1h;');
});

describe('a start', () => {
  test('fails without a valid domain, and prints all errors', async () => {
    dir.write('a.yaml', 'domain: a\nphase: never\n');
    dir.write('b.yaml', 'domain: [\n');
    const said = await refused({ CONFIG_PATH: dir.path });
    expect(said).toMatch(/\/a\.yaml:2:8: phase: /);
    expect(said).toMatch(/\/b\.yaml:\d+:\d+: this is not valid YAML/);
  });

  test('fails without the directory, and names its path and variables', async () => {
    expect(await refused({ RUNTIME_ROOT: dir.join('nowhere') })).toContain(
      '"/nowhere/config" does not exist; create this directory, which ' +
        'RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY specifies',
    );
  });

  test('serves valid domains next to an invalid one, which it reports; SIGHUP reloads invalid files', async () => {
    dir.write('good.yaml', 'domain: good\n');
    dir.write('bad.yaml', 'domain: bad\nphase: never\n');
    server = await startWeir({ env: { CONFIG_PATH: dir.path } });
    expect(await detail()).toMatchObject({ status: 'SERVING', policy: { lastReload: 'error' } });
    expect(await domains()).toBe('good');
    expect(server.log()).toContainEqual(
      expect.objectContaining({
        domain: 'bad',
        files: [dir.join('bad.yaml')],
        msg: 'the domain is invalid; no version is in effect until the errors are corrected',
      }),
    );
    dir.write('bad.yaml', 'domain: bad\n');
    await untilDomains('bad,good');
    expect((await detail()).policy.lastReload).toBe('ok');

    dir.write('bad.yaml', 'domain: bad\nphase: never\n');
    dir.write('good.yaml', 'domain: good2\n');
    server.process.signal('SIGHUP');
    await untilDomains('bad,good2');
    await waitFor('the log', () =>
      server?.log().some(({ domain, msg }) => domain === 'bad' && String(msg).includes('previous version')),
    );
    await waitFor('the signal', () => server?.log().some(({ reason }) => reason === 'signal'));
    expect((await httpRequest(server.httpPort, '/healthcheck')).body).toBe('OK');
  });

  test('names some of many invalid domains, and their number', async () => {
    dir.write('good.yaml', 'domain: good\n');
    for (let i = 0; i < 30; i++) dir.write(`bad${i}.yaml`, `domain: bad${i}\nphase: never\n`);
    opened = await openInProcess({ CONFIG_PATH: dir.path });
    const lines = opened.log().filter(({ msg }) => String(msg).startsWith('the domain is invalid'));
    expect(lines.length).toBe(20);
    expect(opened.log()).toContainEqual(
      expect.objectContaining({ bad: 30, msg: expect.stringContaining('/rlconfig?format=json') }),
    );
  });

  test('serves no domain with an empty directory', async () => {
    mkdirSync(dir.join('config'));
    opened = await openInProcess({ RUNTIME_ROOT: dir.path });
    expect(await domains()).toBe('');
    dir.write('config/a', 'domain: a\n');
    await untilDomains('a');
  });

  test('that is forced answers with an error until a domain is valid', async () => {
    server = await startWeir({
      env: { RUNTIME_ROOT: dir.path, FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' },
      untilHealthy: false,
    });
    const { process: started, grpcPort } = server;
    await waitFor(
      'the port',
      () => started.lines().some((line) => line.includes('weir serves')) || undefined,
    );
    const client = new RlsClient(grpcPort);
    const before = await client.ask('a', [descriptor(['k=v'])]);
    expect(before).toMatchObject({
      code: STATUS.UNAVAILABLE,
      details: 'no rate limit configuration loaded',
    });
    dir.write('config/bad', 'domain: a\nphase: never\n');
    dir.write('config/a', 'domain: b\n');
    await waitFor(
      'an answer',
      async () => (await client.ask('a', [descriptor(['k=v'])])).code === 0 || undefined,
    );
    expect(await domains()).toBe('b');
    rmSync(dir.join('config/bad'));
    await waitFor('no error', async () => (await detail()).policy.lastReload === 'ok' || undefined);
  });
});

describe('a key that was removed', () => {
  const policy = (domain: string, more: string): string =>
    `domain: ${domain}\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 2${more} } }]\n`;
  const REMOVED = policy('a', ', hold: { learned: { start: 1 } }');

  test('and changed decisions refuses a start, also next to a valid file, and a forced one', async () => {
    dir.write('a.yaml', REMOVED);
    const sentence =
      /\/a\.yaml:2:81: descriptors\[0\]\.rate_limit\.hold\.learned: "learned" was removed; write the estimate/;
    expect(await refused({ CONFIG_PATH: dir.path })).toMatch(sentence);
    dir.write('b.yaml', policy('b', ''));
    for (const force of ['false', 'true']) {
      const said = await refused({ CONFIG_PATH: dir.path, FORCE_START_WITHOUT_INITIAL_CONFIG: force });
      expect(said).toMatch(sentence);
      expect(said).toContain('a policy in CONFIG_PATH () has a key that was removed, and would be unlimited');
    }
  });

  test('and changed decisions keeps the previous policy in a reload; one that changed none is ignored', async () => {
    const candidate = policy('a', '').replace(' } }]', ' }, candidate: [nonsense] }]');
    dir.write('a.yaml', candidate);
    server = await startWeir({ env: { CONFIG_PATH: dir.path } });
    expect(server.log()).toContainEqual(
      expect.objectContaining({
        level: 'warning',
        msg: expect.stringMatching(
          /a\.yaml:2:\d+: descriptors\[0\]\.candidate: "candidate" was removed and is ignored/,
        ),
      }),
    );
    const client = new RlsClient(server.grpcPort);
    const codes = async (value: string): Promise<unknown> =>
      Promise.all(
        [1, 2, 3].map(
          async () => (await client.ask('a', [descriptor([`k=${value}`])])).response?.overallCode,
        ),
      );
    const limited = expect.arrayContaining([CODE.OK, CODE.OVER_LIMIT]);
    expect(await codes('start')).toEqual(limited);
    dir.write('a.yaml', REMOVED);
    await waitFor(
      'the failed reload',
      async () => (await detail()).policy.lastReload === 'error' || undefined,
    );
    expect(await codes('change')).toEqual(limited);
    server.process.signal('SIGHUP');
    await waitFor('the signal', () => server?.log().some(({ reason }) => reason === 'signal'));
    expect(await codes('signal')).toEqual(limited);
    expect(await detail()).toMatchObject({ policy: { domains: [{ domain: 'a', state: 'kept' }] } });
  });
});
