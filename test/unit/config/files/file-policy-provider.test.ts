import { renameSync, rmSync, utimesSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { FilePolicyProvider, type ReloadOutcome } from '../../../../src/config/files/file-policy-provider.js';
import { type LoadedPolicies, loadPolicies } from '../../../../src/config/files/load-policies.js';
import type { PolicyLoader } from '../../../../src/config/threads/load-thread.js';
import { FakeTimers } from '../../../support/clock/fake-timers.js';
import { TempDir } from '../../../support/process/temp-dir.js';

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
  provider?.close();
});

/** Loads in this thread. */
class PlainLoader implements PolicyLoader {
  readonly paths: readonly string[];
  /** If set, later loads wait for it. */
  gate: Promise<void> | undefined;
  loads = 0;

  constructor(paths: readonly string[]) {
    this.paths = paths;
  }

  async load(previous?: LoadedPolicies): Promise<LoadedPolicies> {
    this.loads++;
    await this.gate;
    return loadPolicies(this.paths, {}, previous);
  }

  close(): void {}
}

let loader: PlainLoader;

/** Creates a provider that polls only when the test calls `poll`. */
function provide(...paths: string[]): FilePolicyProvider {
  loader = new PlainLoader(paths);
  const made = new FilePolicyProvider(paths, loadPolicies(paths), loader, { pollMs: POLL, timers });
  made.onOutcome((outcome) => outcomes.push(outcome));
  provider = made;
  return made;
}

async function start(started: FilePolicyProvider): Promise<void> {
  started.start();
  await started.idle();
}

/** Polls, and waits for the result. */
async function poll(): Promise<void> {
  timers.run(POLL);
  await provider?.idle();
}

const kinds = (): string[] => outcomes.map((outcome) => `${outcome.reason} ${outcome.kind}`);
const domainsOf = (of: FilePolicyProvider): string[] => [...(of.current()?.domains.keys() ?? [])];

test('a change between the first load and the start is not lost', async () => {
  const file = dir.write('a.yaml', 'domain: a\n');
  const provided = provide(file);
  dir.write('a.yaml', 'domain: b\n');
  await start(provided);
  expect(kinds()).toEqual(['start loaded']);
  expect(domainsOf(provided)).toEqual(['b']);
});

test('an invalid file keeps the previous policy, and all errors are reported once', async () => {
  const file = dir.write('a.yaml', 'domain: a\n');
  const provided = provide(file);
  await start(provided);
  dir.write('a.yaml', 'domain:\nphase: x\n');
  await poll();
  await poll();
  utimesSync(file, 1, 1);
  await poll();
  expect(kinds()).toEqual(['change failed']);
  expect(outcomes[0]?.errors).toHaveLength(2);
  expect(domainsOf(provided)).toEqual(['a']);
  // A new attempt is reported, even if it has the same errors.
  dir.write('a.yaml', 'domain:\nphase: x # mended?\n');
  await poll();
  expect(outcomes[1]?.errors).toEqual(outcomes[0]?.errors);
  // A new error is reported, too.
  dir.write('a.yaml', 'domain: [\n');
  await poll();
  expect(kinds()).toEqual(['change failed', 'change failed', 'change failed']);
});

test('the end of a failure is reported, even if the previous content is restored', async () => {
  dir.write('a.yaml', 'domain: a\n');
  const provided = provide(dir.path);
  const before = provided.current();
  await start(provided);
  dir.write('a.yaml', 'domain:\n');
  await poll();
  dir.write('a.yaml', 'domain: a\n');
  await poll();
  expect(kinds()).toEqual(['change failed', 'change unchanged']);
  expect(provided.current()).toBe(before);
});

test('loads never overlap, and several requests during a load cause one more load', async () => {
  const file = dir.write('a.yaml', 'domain: a\n');
  const provided = provide(file);
  await start(provided);
  let open = (): void => {};
  loader.gate = new Promise((resolve) => {
    open = resolve;
  });
  const first = provided.reload('change');
  const waiting = [provided.reload('signal'), provided.reload('change'), provided.reload('change')];
  dir.write('a.yaml', 'domain: b\n');
  open();
  expect((await first).kind).toBe('loaded');
  for (const outcome of await Promise.all(waiting)) {
    expect(outcome).toMatchObject({ kind: 'unchanged', reason: 'signal' });
  }
  // Nothing had changed at the start, so there were two loads: the first, and one more.
  expect(loader.loads).toBe(2);
});

test('a load that cannot start fails, keeps the state and is repeated', async () => {
  dir.write('a.yaml', 'domain: a\n');
  const provided = provide(dir.path);
  await start(provided);
  const before = provided.current();
  loader.gate = Promise.reject(new Error('no thread'));
  dir.write('b.yaml', 'domain: b\n');
  await poll();
  expect(kinds()).toEqual(['change failed']);
  expect(outcomes[0]?.errors).toMatchObject([
    { file: dir.path, message: expect.stringMatching(/^the policies could not be loaded: no thread; /) },
  ]);
  expect(provided.current()).toBe(before);
  expect(provided.domains()).toMatchObject([{ domain: 'a', state: 'ok' }]);
  loader.gate = undefined;
  await poll();
  expect(domainsOf(provided)).toEqual(['a', 'b']);
});

test('a stop during a load keeps the state', async () => {
  const file = dir.write('a.yaml', 'domain: a\n');
  const provided = provide(file);
  await start(provided);
  dir.write('a.yaml', 'domain: b\n');
  const outcome = provided.reload('signal');
  provided.close();
  expect((await outcome).kind).toBe('unchanged');
  expect(domainsOf(provided)).toEqual(['a']);
  expect(outcomes).toEqual([]);
  expect((await provided.reload('signal')).kind).toBe('unchanged');
});

test('identical content is not a reload', async () => {
  const file = dir.write('a.yaml', 'domain: a\n');
  const provided = provide(file);
  const before = provided.current();
  await start(provided);
  utimesSync(file, 1, 1);
  await poll();
  dir.write('new.yaml', 'domain: a\n');
  renameSync(dir.join('new.yaml'), file);
  await poll();
  expect(kinds()).toEqual([]);
  expect(provided.current()).toBe(before);
});

test('an explicit reload always has a result', async () => {
  const file = dir.write('a.yaml', 'domain: a\n');
  const provided = provide(file);
  await start(provided);
  expect(await provided.reload('signal')).toMatchObject({ kind: 'unchanged', reason: 'signal', errors: [] });
  dir.write('a.yaml', 'domain: b\n');
  expect((await provided.reload('signal')).kind).toBe('loaded');
  dir.write('a.yaml', 'domain:\n');
  expect((await provided.reload('signal')).kind).toBe('failed');
  expect((await provided.reload('signal')).kind).toBe('failed');
  expect(kinds()).toEqual(['signal unchanged', 'signal loaded', 'signal failed', 'signal failed']);
  expect(domainsOf(provided)).toEqual(['b']);
});

test('after a start with a failure, the end of the failure is reported', async () => {
  const file = dir.write('a.yaml', 'domain:\n');
  const provided = provide(file);
  await start(provided);
  expect(kinds()).toEqual([]);
  dir.write('a.yaml', 'domain: a\n');
  await poll();
  expect(kinds()).toEqual(['change loaded']);
});

test('a key table elsewhere is followed as soon as a policy names it', async () => {
  const digest = '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae';
  const derive = 'derive: [{ entry: t, from: [k], sha256_file: ../secret/keys.yaml }]';
  const file = dir.write('policies/a.yaml', 'domain: a\n');
  const tenant = (): string | undefined =>
    provided
      .current()
      ?.domains.get('a')
      ?.match([{ key: 'k', value: 'foo' }]).entries[0]?.value;
  const provided = provide(file);
  await start(provided);
  dir.write('secret/keys.yaml', `${digest}: acme\n`);
  dir.write('policies/a.yaml', `domain: a\n${derive}\n`);
  await poll();
  expect(tenant()).toBe('acme');
  dir.write('secret/keys.yaml', `${digest}: globex\n`);
  await poll();
  expect(tenant()).toBe('globex');
  rmSync(dir.join('secret'), { recursive: true });
  await poll();
  expect(tenant()).toBe('globex');
  dir.write('secret/keys.yaml', `${digest}: initech\n`);
  await poll();
  expect(tenant()).toBe('initech');
  expect(kinds()).toEqual(['change loaded', 'change loaded', 'change failed', 'change loaded']);
});

test('stop leaves no timer, and a second start adds none', async () => {
  const provided = provide(dir.write('a.yaml', 'domain: a\n'));
  await start(provided);
  await start(provided);
  expect(timers.delays).toEqual([POLL]);
  provided.close();
  expect(timers.delays).toEqual([]);
  expect(domainsOf(provided)).toEqual(['a']);
});
