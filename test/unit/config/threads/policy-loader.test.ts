import { rmSync } from 'node:fs';
import { beforeEach, expect, test } from '@jest/globals';
import { type LoadedPolicies, loadPolicies } from '../../../../src/config/files/load-policies.js';
import { dumpTree } from '../../../../src/config/show/dump-tree.js';
import { ThreadPolicyLoader } from '../../../../src/config/threads/load-thread.js';
import { TempDir } from '../../../support/process/temp-dir.js';

let dir: TempDir;
beforeEach(() => {
  dir = new TempDir();
});

/** Returns the comparable parts of a load. */
function shown({ policySet, ...rest }: LoadedPolicies): unknown {
  return { ...rest, version: policySet.version, tree: dumpTree(policySet, 0) };
}

test('a thread returns the same as this thread: policies, problems, files, statuses and memory', async () => {
  dir.write('a.yaml', 'domain: a\nderive: [{ entry: t, from: [k], sha256_file: keys.yaml }]\n');
  dir.write('keys.yaml', `${'0'.repeat(64)}: acme\n`);
  dir.write('b.yaml', 'domain: b\ndescriptors: [{ key: k, shadow_mode: true }]\n');
  dir.write('bad.yaml', 'domain: c\ndescriptors: [{ value: v, rate_limit: { unit: eon } }]\n');
  dir.write('worse.yaml', 'domain: [\n');
  const expected = loadPolicies([dir.path]);
  expect(expected.errors.length).toBeGreaterThan(2);
  expect(expected.warnings).not.toEqual([]);
  const loaded = await new ThreadPolicyLoader([dir.path]).load();
  expect(shown(loaded)).toEqual(shown(expected));
  // Load again after the state that each of them left.
  const again = await new ThreadPolicyLoader([dir.path]).load(loaded);
  expect(shown(again)).toEqual(shown(loadPolicies([dir.path], {}, expected)));
});

test('domains are merged if configured', async () => {
  for (const name of ['a', 'b']) {
    dir.write(
      `${name}.yaml`,
      `domain: d\ndescriptors: [{ key: ${name}, rate_limit: { unlimited: true } }]\n`,
    );
  }
  const merged = await new ThreadPolicyLoader([dir.path], { mergeDomains: true }).load();
  expect(merged.errors).toEqual([]);
  expect(merged.policySet.domains.get('d')?.rules).toHaveLength(2);
  const { errors, policySet } = await new ThreadPolicyLoader([dir.path]).load();
  expect(errors).not.toEqual([]);
  expect(policySet.domains.size).toBe(0);
});

test('files without an algorithm have the default one, also in the thread', async () => {
  const limit = 'descriptors: [{ key: k, rate_limit: { unit: minute, requests_per_unit: 5 } }]\n';
  dir.write('a.yaml', `domain: a\n${limit}`);
  dir.write('b.yaml', `domain: b\nalgorithm: fixed_window\n${limit}`);
  const loader = new ThreadPolicyLoader([dir.path], { defaultAlgorithm: 'token_bucket' });
  const kinds = ({ policySet }: LoadedPolicies) =>
    [...policySet.domains.values()].map(({ rules, overrideAlgorithm }) => [
      rules[0]?.rate?.kind,
      overrideAlgorithm,
    ]);
  const loaded = await loader.load();
  expect(kinds(loaded)).toEqual([
    ['token_bucket', 'token_bucket'],
    ['window', 'fixed_window'],
  ]);
  dir.write('b.yaml', `domain: b\n${limit}`);
  expect(kinds(await loader.load(loaded))[1]).toEqual(['token_bucket', 'token_bucket']);
});

test('a domain with unchanged files stays the same object, and so does a domain that is now invalid', async () => {
  for (const name of ['same', 'changed', 'spoilt', 'gone']) dir.write(`${name}.yaml`, `domain: ${name}\n`);
  const loader = new ThreadPolicyLoader([dir.path]);
  const before = await loader.load();
  dir.write('changed.yaml', 'domain: changed\nphase: monitoring\n');
  dir.write('spoilt.yaml', 'domain: spoilt\nphase: never\n');
  rmSync(dir.join('gone.yaml'));
  const after = await loader.load(before);
  const now = (loaded: LoadedPolicies, domain: string) => loaded.policySet.domains.get(domain);
  expect([...after.policySet.domains.keys()].sort()).toEqual(['changed', 'same', 'spoilt']);
  expect(now(after, 'same')).toBe(now(before, 'same'));
  expect(now(after, 'spoilt')).toBe(now(before, 'spoilt'));
  expect(now(after, 'changed')).not.toBe(now(before, 'changed'));
  expect(after.domains.map(({ state }) => state)).toEqual(['ok', 'ok', 'kept']);
  // An invalid file is always compared with the last valid version.
  dir.write('spoilt.yaml', 'domain: spoilt\n');
  const mended = await loader.load(await loader.load(after));
  expect(mended.errors).toEqual([]);
  expect(now(mended, 'spoilt')).toBe(now(before, 'spoilt'));
});

test('a closed loader rejects pending loads', async () => {
  dir.write('a.yaml', 'domain: a\n');
  const loader = new ThreadPolicyLoader([dir.path]);
  const load = loader.load();
  loader.close();
  await expect(load).rejects.toThrow(/the thread that loads policies exited/);
});

test('a thread that cannot start is a failed load', async () => {
  const notPlain = { directory: dir.path, setting: () => '' } as unknown as string;
  await expect(new ThreadPolicyLoader([notPlain]).load()).rejects.toThrow(/could not be cloned/);
});
