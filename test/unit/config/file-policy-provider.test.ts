import { renameSync, rmSync, utimesSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { FilePolicyProvider, type ReloadOutcome } from '../../../src/config/file-policy-provider.js';
import { loadPolicies } from '../../../src/config/load-policies.js';
import { FakeTimers } from '../../support/fake-timers.js';
import { TempDir } from '../../support/temp-dir.js';

const POLL = 7000;
let dir: TempDir;
let timers: FakeTimers;
let provider: FilePolicyProvider | undefined;
let outcomes: ReloadOutcome[];

beforeEach(() => {
  dir = new TempDir();
  timers = new FakeTimers();
  outcomes = [];
});
afterEach(() => {
  provider?.stop();
  dir.remove();
});

/** A provider that only polls, and only when the test says so. */
function provide(...paths: string[]): FilePolicyProvider {
  const made = new FilePolicyProvider(paths, loadPolicies(paths), { watch: false, pollMs: POLL, timers });
  made.onReload((outcome) => outcomes.push(outcome));
  provider = made;
  return made;
}

const kinds = (): string[] => outcomes.map((outcome) => `${outcome.reason} ${outcome.kind}`);
const domainsOf = (of: FilePolicyProvider): string[] => [...of.current.domains.keys()];

test('a change is loaded at the next poll, and the set is swapped as a whole', () => {
  const file = dir.write('a.yaml', 'domain: a\n');
  const provided = provide(file);
  const before = provided.current;
  provided.start();
  expect(kinds()).toEqual([]);
  dir.write('a.yaml', 'domain: changed\n');
  expect(provided.current).toBe(before);
  timers.run(POLL);
  expect(domainsOf(provided)).toEqual(['changed']);
  expect([...before.domains.keys()]).toEqual(['a']);
  expect(kinds()).toEqual(['poll loaded']);
  expect(outcomes[0]?.policySet).toBe(provided.current);
});

test('a change between the first load and the start is not lost', () => {
  const file = dir.write('a.yaml', 'domain: a\n');
  const provided = provide(file);
  dir.write('a.yaml', 'domain: b\n');
  provided.start();
  expect(kinds()).toEqual(['start loaded']);
  expect(domainsOf(provided)).toEqual(['b']);
});

test('a bad file keeps the old policy and tells all errors, once', () => {
  const file = dir.write('a.yaml', 'domain: a\n');
  const provided = provide(file);
  provided.start();
  dir.write('a.yaml', 'domain:\nphase: x\n');
  timers.run(POLL);
  timers.run(POLL);
  utimesSync(file, 1, 1);
  timers.run(POLL);
  expect(kinds()).toEqual(['poll failed']);
  expect(outcomes[0]?.errors).toHaveLength(2);
  expect(domainsOf(provided)).toEqual(['a']);
  // Another mistake is news.
  dir.write('a.yaml', 'domain: [\n');
  timers.run(POLL);
  expect(kinds()).toEqual(['poll failed', 'poll failed']);
});

test('the end of a failure is told, even when the old content is back', () => {
  dir.write('a.yaml', 'domain: a\n');
  const provided = provide(dir.path);
  const before = provided.current;
  provided.start();
  dir.write('a.yaml', 'domain:\n');
  timers.run(POLL);
  dir.write('a.yaml', 'domain: a\n');
  timers.run(POLL);
  expect(kinds()).toEqual(['poll failed', 'poll unchanged']);
  expect(provided.current).toBe(before);
});

test('one bad file among good ones keeps all of the old policy', () => {
  dir.write('a.yaml', 'domain: a\n');
  const provided = provide(dir.path);
  provided.start();
  dir.write('a.yaml', 'domain: a2\n');
  dir.write('b.yaml', 'domain:\n');
  timers.run(POLL);
  expect(domainsOf(provided)).toEqual(['a']);
});

test('identical content is no reload', () => {
  const file = dir.write('a.yaml', 'domain: a\n');
  const provided = provide(file);
  const before = provided.current;
  provided.start();
  utimesSync(file, 1, 1);
  timers.run(POLL);
  dir.write('new.yaml', 'domain: a\n');
  renameSync(dir.join('new.yaml'), file);
  timers.run(POLL);
  expect(kinds()).toEqual([]);
  expect(provided.current).toBe(before);
});

test('asked to reload it always answers', () => {
  const file = dir.write('a.yaml', 'domain: a\n');
  const provided = provide(file);
  provided.start();
  expect(provided.reload('signal')).toMatchObject({ kind: 'unchanged', reason: 'signal', errors: [] });
  dir.write('a.yaml', 'domain: b\n');
  expect(provided.reload('signal').kind).toBe('loaded');
  dir.write('a.yaml', 'domain:\n');
  expect(provided.reload('signal').kind).toBe('failed');
  expect(provided.reload('signal').kind).toBe('failed');
  expect(kinds()).toEqual(['signal unchanged', 'signal loaded', 'signal failed', 'signal failed']);
  expect(domainsOf(provided)).toEqual(['b']);
});

test('a start with a failure tells when it ends', () => {
  const file = dir.write('a.yaml', 'domain:\n');
  const provided = provide(file);
  provided.start();
  expect(kinds()).toEqual([]);
  dir.write('a.yaml', 'domain: a\n');
  timers.run(POLL);
  expect(kinds()).toEqual(['poll loaded']);
});

test('files that come and go, and a directory that does', () => {
  dir.write('policies/a.yaml', 'domain: a\n');
  const provided = provide(dir.join('policies'));
  provided.start();
  dir.write('policies/b.yaml', 'domain: b\n');
  timers.run(POLL);
  expect(domainsOf(provided)).toEqual(['a', 'b']);
  rmSync(dir.join('policies/a.yaml'));
  timers.run(POLL);
  expect(domainsOf(provided)).toEqual(['b']);
  rmSync(dir.join('policies'), { recursive: true });
  timers.run(POLL);
  expect(domainsOf(provided)).toEqual(['b']);
  dir.write('policies/c.yaml', 'domain: c\n');
  timers.run(POLL);
  expect(domainsOf(provided)).toEqual(['c']);
  expect(kinds()).toEqual(['poll loaded', 'poll loaded', 'poll failed', 'poll loaded']);
});

test('a key table elsewhere is followed, from the moment a policy names it', () => {
  const digest = '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae';
  const derive = 'derive: [{ entry: t, from: [k], sha256_file: ../secret/keys.yaml }]';
  const file = dir.write('policies/a.yaml', 'domain: a\n');
  const tenant = (): string | undefined =>
    provided.current.domains.get('a')?.match([{ key: 'k', value: 'foo' }]).entries[0]?.value;
  const provided = provide(file);
  provided.start();
  dir.write('secret/keys.yaml', `${digest}: acme\n`);
  dir.write('policies/a.yaml', `domain: a\n${derive}\n`);
  timers.run(POLL);
  expect(tenant()).toBe('acme');
  dir.write('secret/keys.yaml', `${digest}: globex\n`);
  timers.run(POLL);
  expect(tenant()).toBe('globex');
  rmSync(dir.join('secret'), { recursive: true });
  timers.run(POLL);
  expect(tenant()).toBe('globex');
  dir.write('secret/keys.yaml', `${digest}: initech\n`);
  timers.run(POLL);
  expect(tenant()).toBe('initech');
  expect(kinds()).toEqual(['poll loaded', 'poll loaded', 'poll failed', 'poll loaded']);
});

test('stop leaves no timer, start twice no second one', () => {
  const provided = provide(dir.write('a.yaml', 'domain: a\n'));
  provided.start();
  provided.start();
  expect(timers.delays).toEqual([POLL]);
  provided.stop();
  expect(timers.delays).toEqual([]);
  expect(domainsOf(provided)).toEqual(['a']);
});
