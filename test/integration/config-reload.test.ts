import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { assetPath } from '../../src/assets.js';
import { FilePolicyProvider, type FilePolicyProviderOptions } from '../../src/config/file-policy-provider.js';
import { loadPolicies } from '../../src/config/load-policies.js';
import { TempDir } from '../support/temp-dir.js';

/** Real files, real events, real timers: each way of following files must notice each way of changing them. */
const WAYS: readonly (readonly [string, FilePolicyProviderOptions])[] = [
  ['file system events alone', { watch: true, pollMs: 3_600_000, debounceMs: 5 }],
  ['polling alone', { watch: false, pollMs: 10 }],
];

let dir: TempDir;
let provider: FilePolicyProvider;
beforeEach(() => {
  dir = new TempDir();
});
afterEach(() => {
  provider.stop();
  dir.remove();
});

const domains = (): string => [...provider.current.domains.keys()].join();

function follow(paths: readonly string[], options: FilePolicyProviderOptions): void {
  provider = new FilePolicyProvider(paths, loadPolicies(paths), options);
  provider.start();
}

/** Resolves once the domains in force are these; the test's time limit is the only one. */
function untilDomains(expected: string): Promise<void> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (domains() === expected) resolve();
    };
    provider.onReload(check);
    check();
  });
}

describe.each(WAYS)('%s', (_name, options) => {
  test('an edit in place', async () => {
    const file = dir.write('a.yaml', 'domain: a\n');
    follow([file], options);
    for (const name of ['b', 'c', 'd']) {
      writeFileSync(file, `domain: ${name}\n`);
      await untilDomains(name);
    }
  });

  test('a rename over the file, again and again', async () => {
    const file = dir.write('a.yaml', 'domain: a\n');
    follow([file], options);
    for (const name of ['b', 'c', 'd']) {
      renameSync(dir.write('a.yaml.tmp', `domain: ${name}\n`), file);
      await untilDomains(name);
    }
  });

  test.each(['', 'policy.yaml'])('the swap of ..data that Kubernetes does, following "%s"', async (name) => {
    const publish = (version: string, previous?: string): void => {
      dir.write(`..${version}/policy.yaml`, `domain: ${version}\n`);
      symlinkSync(`..${version}`, dir.join('..data_tmp'));
      renameSync(dir.join('..data_tmp'), dir.join('..data'));
      if (previous !== undefined) rmSync(dir.join(`..${previous}`), { recursive: true });
    };
    publish('v1');
    symlinkSync('..data/policy.yaml', dir.join('policy.yaml'));
    follow([dir.join(name)], options);
    let previous = 'v1';
    for (const version of ['v2', 'v3', 'v4']) {
      publish(version, previous);
      await untilDomains(version);
      previous = version;
    }
  });

  test('files added and removed', async () => {
    dir.write('a.yaml', 'domain: a\n');
    follow([dir.path], options);
    dir.write('b.yaml', 'domain: b\n');
    await untilDomains('a,b');
    rmSync(dir.join('a.yaml'));
    await untilDomains('b');
  });

  test('a directory renamed away and replaced, twice', async () => {
    dir.write('policies/a.yaml', 'domain: a\n');
    follow([dir.join('policies')], options);
    for (const name of ['b', 'c']) {
      dir.write(`${name}/a.yaml`, `domain: ${name}\n`);
      renameSync(dir.join('policies'), dir.join(`old-${name}`));
      renameSync(dir.join(name), dir.join('policies'));
      await untilDomains(name);
      // The new directory itself is followed, not only its arrival.
      writeFileSync(dir.join('policies/a.yaml'), `domain: ${name}2\n`);
      await untilDomains(`${name}2`);
    }
  });

  test('a key table in a directory of its own', async () => {
    const digest = '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae';
    mkdirSync(dir.join('secret'));
    const table = dir.write('secret/keys.yaml', `${digest}: acme\n`);
    const file = dir.write(
      'policies/a.yaml',
      'domain: a\nderive: [{ entry: t, from: [k], sha256_file: ../secret/keys.yaml }]\n',
    );
    follow([file], options);
    const loaded = new Promise<void>((resolve) => provider.onReload(() => resolve()));
    renameSync(dir.write('secret/new', `${digest}: globex\n`), table);
    await loaded;
    const match = provider.current.domains.get('a')?.match([{ key: 'k', value: 'foo' }]);
    expect(match?.entries).toEqual([{ key: 't', value: 'globex' }]);
  });

  test('a burst of edits ends with the last one', async () => {
    const file = dir.write('a.yaml', 'domain: a\n');
    follow([file], options);
    for (let i = 0; i <= 200; i++) writeFileSync(file, `domain: d${i}\n`);
    await untilDomains('d200');
  });

  test('a bad edit, then a good one', async () => {
    const file = dir.write('a.yaml', 'domain: a\n');
    follow([file], options);
    const failed = new Promise<number>((resolve) => {
      provider.onReload((outcome) => {
        if (outcome.kind === 'failed' && outcome.errors[0]?.line === 1) resolve(outcome.errors.length);
      });
    });
    renameSync(dir.write('bad', 'domain: ""\n'), file);
    expect(await failed).toBe(1);
    expect(domains()).toBe('a');
    renameSync(dir.write('good', 'domain: b\n'), file);
    await untilDomains('b');
  });
});

test('a provider that runs does not hold the process', () => {
  dir.write('a.yaml', 'domain: a\n');
  const room = JSON.stringify(assetPath('src/config'));
  const script = `
    const { FilePolicyProvider } = require(${room} + '/file-policy-provider.js');
    const { loadPolicies } = require(${room} + '/load-policies.js');
    const paths = [${JSON.stringify(dir.path)}];
    new FilePolicyProvider(paths, loadPolicies(paths)).start();
    process.on('exit', () => console.log('left by itself'));
  `;
  const output = execFileSync(process.execPath, ['-e', script], { timeout: 20_000, encoding: 'utf8' });
  expect(output).toBe('left by itself\n');
  follow([dir.path], {});
});
