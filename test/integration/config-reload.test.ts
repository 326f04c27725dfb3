import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  FilePolicyProvider,
  type FilePolicyProviderOptions,
  type ReloadOutcome,
} from '../../src/config/files/file-policy-provider.js';
import { loadPolicies } from '../../src/config/files/load-policies.js';
import type { PolicyPlace, RuntimeLayout } from '../../src/config/files/policy-paths.js';
import { type PolicyLoader, ThreadPolicyLoader } from '../../src/config/threads/load-thread.js';
import { assetPath } from '../../src/runtime/assets.js';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';

/** Polling must detect each way to change files, with real files and timers. */
const POLLING: FilePolicyProviderOptions = { pollMs: 10 };

let dir: TempDir;
let provider: FilePolicyProvider;
beforeEach(() => {
  dir = new TempDir();
});
afterEach(() => {
  provider.close();
});

const domains = (): string => [...(provider.current()?.domains.keys() ?? [])].join();

/** Loads in this thread, because starting a thread for each load takes most of the time of these tests. */
const plainLoader = (places: readonly PolicyPlace[]): PolicyLoader => ({
  load: async (previous) => loadPolicies(places, {}, previous),
  close: () => {},
});

async function follow(
  places: readonly PolicyPlace[],
  options = POLLING,
  loader = plainLoader(places),
): Promise<void> {
  provider = new FilePolicyProvider(places, await loader.load(), loader, options);
  provider.start();
}

/** Resolves once exactly these domains are in effect; only the time limit of the test bounds the wait. */
function untilDomains(expected: string): Promise<void> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (domains() === expected) resolve();
    };
    provider.onOutcome(check);
    check();
  });
}

/** Resolves when a reload fails. */
function untilFailed(): Promise<ReloadOutcome> {
  return new Promise((resolve) => {
    provider.onOutcome((outcome) => {
      if (outcome.kind === 'failed') resolve(outcome);
    });
  });
}

/** Replaces a link atomically. */
function swapLink(target: string, link: string): void {
  symlinkSync(target, `${link}.tmp`);
  renameSync(`${link}.tmp`, link);
}

describe('polling', () => {
  test('loads an edit in place', async () => {
    const file = dir.write('a.yaml', 'domain: a\n');
    await follow([file]);
    for (const name of ['b', 'c', 'd']) {
      writeFileSync(file, `domain: ${name}\n`);
      await untilDomains(name);
    }
  });

  test('loads repeated renames over the file', async () => {
    const file = dir.write('a.yaml', 'domain: a\n');
    await follow([file]);
    for (const name of ['b', 'c', 'd']) {
      renameSync(dir.write('a.yaml.tmp', `domain: ${name}\n`), file);
      await untilDomains(name);
    }
  });

  test.each(['', 'policy.yaml'])(
    'loads the swap of ..data that Kubernetes makes, following "%s"',
    async (name) => {
      const publish = (version: string, previous?: string): void => {
        dir.write(`..${version}/policy.yaml`, `domain: ${version}\n`);
        symlinkSync(`..${version}`, dir.join('..data_tmp'));
        renameSync(dir.join('..data_tmp'), dir.join('..data'));
        if (previous !== undefined) rmSync(dir.join(`..${previous}`), { recursive: true });
      };
      publish('v1');
      symlinkSync('..data/policy.yaml', dir.join('policy.yaml'));
      await follow([dir.join(name)]);
      let previous = 'v1';
      for (const version of ['v2', 'v3', 'v4']) {
        publish(version, previous);
        await untilDomains(version);
        previous = version;
      }
    },
  );

  test('loads added and removed files', async () => {
    dir.write('a.yaml', 'domain: a\n');
    await follow([dir.path]);
    dir.write('b.yaml', 'domain: b\n');
    await untilDomains('a,b');
    rmSync(dir.join('a.yaml'));
    await untilDomains('b');
  });

  test('loads a key table in its own directory', async () => {
    const digest = '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae';
    mkdirSync(dir.join('secret'));
    const table = dir.write('secret/keys.yaml', `${digest}: acme\n`);
    const file = dir.write(
      'policies/a.yaml',
      'domain: a\nderive: [{ entry: t, from: [k], sha256_file: ../secret/keys.yaml }]\n',
    );
    await follow([file]);
    const loaded = new Promise<void>((resolve) => provider.onOutcome(() => resolve()));
    renameSync(dir.write('secret/new', `${digest}: globex\n`), table);
    await loaded;
    const match = provider
      .current()
      ?.domains.get('a')
      ?.match([{ key: 'k', value: 'foo' }]);
    expect(match?.entries).toEqual([{ key: 't', value: 'globex' }]);
  });

  test('loads the last edit of a burst', async () => {
    const file = dir.write('a.yaml', 'domain: a\n');
    // Files change while a load runs in its thread.
    await follow([file], POLLING, new ThreadPolicyLoader([file]));
    for (let i = 0; i <= 200; i++) writeFileSync(file, `domain: d${i}\n`);
    await untilDomains('d200');
  });

  test('recovers from an invalid edit with a valid one', async () => {
    const file = dir.write('a.yaml', 'domain: a\n');
    await follow([file]);
    const failed = untilFailed();
    renameSync(dir.write('bad', 'domain: ""\n'), file);
    expect((await failed).errors).toMatchObject([{ line: 1 }]);
    expect(domains()).toBe('a');
    renameSync(dir.write('good', 'domain: b\n'), file);
    await untilDomains('b');
  });

  test('loads valid files next to an invalid file, whose domain stays', async () => {
    dir.write('a.yaml', 'domain: a\n');
    dir.write('b.yaml', 'domain: b\n');
    await follow([dir.path]);
    const before = provider.current()?.domains.get('a');
    const failed = untilFailed();
    writeFileSync(dir.join('a.yaml'), 'domain: a\nphase: never\n');
    const outcome = await failed;
    expect(outcome.domains).toMatchObject([
      { domain: 'a', state: 'kept' },
      { domain: 'b', state: 'ok' },
    ]);
    dir.write('c.yaml', 'domain: c\n');
    await untilDomains('a,b,c');
    expect(provider.current()?.domains.get('a')).toBe(before);
    rmSync(dir.join('a.yaml'));
    await untilDomains('b,c');
  });

  test('loads a file that is removed and restored', async () => {
    const file = dir.write('a.yaml', 'domain: a\n');
    await follow([file]);
    const failed = untilFailed();
    rmSync(file);
    expect((await failed).errors[0]?.message).toMatch(/does not exist/);
    expect(domains()).toBe('a');
    dir.write('a.yaml', 'domain: b\n');
    await untilDomains('b');
  });

  test('clears the error of a file once it is completely written', async () => {
    const rule = '  - { key: k, rate_limit: { unit: day, requests_per_unit: 1 } }\n';
    const file = dir.write('a.yaml', `domain: a\ndescriptors:\n${rule}`);
    await follow([file]);
    const failed = untilFailed();
    writeFileSync(file, 'domain: grown\ndescriptors: [\n');
    await failed;
    expect(domains()).toBe('a');
    appendFileSync(file, '  { key: half }');
    appendFileSync(file, ' ]\n');
    await untilDomains('grown');
  });
});

// In the reference, RUNTIME_WATCH_ROOT selects which of these changes it detects. weir always detects all.
describe.each([true, false])('the layout of RUNTIME_ROOT, RUNTIME_WATCH_ROOT=%s', (beside) => {
  const layout = (): RuntimeLayout => ({
    directory: dir.join('current/sub/config'),
    setting: 'RUNTIME_ROOT',
    beside,
    ignoreDotFiles: false,
  });

  test('loads each release that the root is switched to', async () => {
    const release = (name: string): void => {
      dir.write(`releases/${name}/sub/config/policy`, `domain: ${name}\n`);
      swapLink(`releases/${name}`, dir.join('current'));
    };
    release('v1');
    await follow([layout()]);
    for (const name of ['v2', 'v3']) {
      release(name);
      await untilDomains(name);
    }
    // weir follows files in the current release, too.
    dir.write('releases/v3/sub/config/more.txt', 'domain: more\n');
    await untilDomains('more,v3');
  });

  test('survives a root that leads nowhere for a while', async () => {
    dir.write('v1/sub/config/policy', 'domain: v1\n');
    swapLink('v1', dir.join('current'));
    await follow([layout()]);
    const failed = untilFailed();
    swapLink('v2', dir.join('current'));
    await failed;
    expect(domains()).toBe('v1');
    dir.write('half/sub/config/policy', 'domain: v2\n');
    renameSync(dir.join('half'), dir.join('v2'));
    await untilDomains('v2');
  });

  test('loads the swap of ..data in a Kubernetes volume, without RUNTIME_IGNOREDOTFILES', async () => {
    const publish = (version: string, previous?: string): void => {
      dir.write(`current/sub/config/..${version}/a.yaml`, `domain: ${version}\n`);
      swapLink(`..${version}`, dir.join('current/sub/config/..data'));
      if (previous !== undefined) rmSync(dir.join(`current/sub/config/..${previous}`), { recursive: true });
    };
    publish('v1');
    symlinkSync('..data/a.yaml', dir.join('current/sub/config/a.yaml'));
    await follow([layout()]);
    expect(domains()).toBe('v1');
    for (const [version, previous] of [
      ['v2', 'v1'],
      ['v3', 'v2'],
    ] as const) {
      publish(version, previous);
      await untilDomains(version);
    }
  });

  test('loads files that are edited, added, made readable and removed, also in subdirectories', async () => {
    dir.write('current/sub/config/a', 'domain: a\n');
    await follow([layout()]);
    writeFileSync(dir.join('current/sub/config/a'), 'domain: a2\n');
    await untilDomains('a2');
    dir.write('current/sub/config/team/deep/b.conf', 'domain: b\n');
    await untilDomains('a2,b');
    writeFileSync(dir.join('current/sub/config/team/deep/b.conf'), 'domain: b2\n');
    await untilDomains('a2,b2');
    // A change of the mode alone triggers a reload; only the content counts.
    chmodSync(dir.join('current/sub/config/a'), 0o600);
    rmSync(dir.join('current/sub/config/team'), { recursive: true });
    await untilDomains('a2');
  });

  test('with RUNTIME_WATCH_ROOT, loads paths next to the directory that begin with its name', async () => {
    if (!beside) return;
    dir.write('root/config.yaml', 'domain: a\n');
    const place = { directory: dir.join('root/config'), setting: '', beside: true, ignoreDotFiles: true };
    await follow([place]);
    writeFileSync(dir.join('root/config.yaml'), 'domain: b\n');
    await untilDomains('b');
    dir.write('root/config.d/c.yaml', 'domain: c\n');
    await untilDomains('c,b');
  });
});

test('a provider that runs does not keep the process alive', async () => {
  dir.write('a.yaml', 'domain: a\n');
  const room = JSON.stringify(assetPath('src/config'));
  const script = `
    const { FilePolicyProvider } = require(${room} + '/files/file-policy-provider.js');
    const { ThreadPolicyLoader } = require(${room} + '/threads/load-thread.js');
    const places = [${JSON.stringify(dir.path)}];
    const loader = new ThreadPolicyLoader(places);
    loader.load().then((initial) => {
      console.log([...initial.policySet.domains.keys()].join());
      new FilePolicyProvider(places, initial, loader).start();
    });
    process.on('exit', () => console.log('left by itself'));
  `;
  const ended = await runToEnd(process.execPath, ['-e', script]);
  expect(ended).toMatchObject({ code: 0, stdout: 'a\nleft by itself\n' });
  await follow([dir.path]);
});
