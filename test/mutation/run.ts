// `npm run mutate`: whether the tests of a room notice when its source is wrong. See docs/internals/testing.md.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../support/process/tools.js';
import { identityOf, type Mutation, mutate, mutationsOf } from './mutations.js';
import { HELP, type MutationOptions, readMutationOptions } from './options.js';
import type { FileResult } from './reporter.js';
import {
  describeResult,
  type MutationResult,
  type MutationResults,
  onlyAfterwards,
  tableOf,
} from './results.js';
import { draw, roomOf, sharesOf } from './sample.js';
import { TestsOfRooms } from './tests-of-rooms.js';
import { Workspace } from './workspace.js';

/** Tests of a mutation: the quickest files first, as long as they took this time in all without it. */
const ALLOWANCE_MS = 30_000;
/** A run is stopped after this many times what its tests took without a mutation, and the time jest needs to start. */
const PATIENCE = 2.5;
const START_MS = 15_000;

const startedMs = performance.now();
const say = (line: string) => process.stdout.write(`${line}\n`);
const tell = (line: string) => process.stderr.write(`weir: ${line}, ${secondsSince(startedMs)} s\n`);
const secondsSince = (ms: number) => Math.round((performance.now() - ms) / 1000);

/** Texts of all files of src/ and test/, by path. The page is left out: it is not compiled file by file. */
function readTexts(): Map<string, string> {
  const paths = ['src', 'test'].flatMap((top) =>
    readdirSync(join(repositoryRoot, top), { recursive: true, encoding: 'utf8' }).map((one) =>
      join(top, one),
    ),
  );
  const wanted = paths.filter((path) => path.endsWith('.ts') && !path.startsWith('src/page/'));
  return new Map(wanted.map((path) => [path, readFileSync(join(repositoryRoot, path), 'utf8')]));
}

/** The mutations that the options ask for. Those of earlier results are found again by their identity. */
function chosen(
  options: MutationOptions,
  sources: ReadonlyMap<string, string>,
  before?: MutationResults,
): Mutation[] {
  const all = mutationsOf(sources);
  if (before !== undefined) {
    const byIdentity = new Map(all.map((one) => [identityOf(one), one]));
    const gone = before.mutations.filter((one) => !byIdentity.has(identityOf(one)));
    for (const { path, line, change, text } of gone)
      say(`- ${path}:${line}: ${change} in "${text}": no longer in the source`);
    return before.mutations.flatMap((one) => byIdentity.get(identityOf(one)) ?? []);
  }
  const lines = new Map(options.rooms.map((room) => [room, 0]));
  for (const [path, text] of sources) {
    const counted = lines.get(roomOf(path));
    if (counted !== undefined) lines.set(roomOf(path), counted + text.split('\n').length);
  }
  for (const [room, count] of lines) if (count === 0) throw new Error(`--rooms: src/${room} has no source`);
  return draw(all, sharesOf(lines, options.count), options.seed);
}

/** Runs each test file without a mutation, and returns the results by path. */
async function measure(workspace: Workspace, tests: readonly string[], workers: number) {
  tell(`running ${tests.length} test files without a mutation`);
  const limitMs = 20 * 60_000;
  const { files } = await workspace.jest(tests, limitMs, ['--maxWorkers', `${workers}`]);
  if (files === undefined) throw new Error('the tests do not end without a mutation');
  return new Map(files.map((file) => [file.path, file]));
}

/**
 * The quickest of `tests` that together take no longer than the allowance, at least one, and the others. The test
 * `first` comes before all, so that what killed a mutation once is never left out.
 */
function affordable(
  tests: readonly string[],
  measured: ReadonlyMap<string, FileResult>,
  first: string | undefined,
) {
  const passing = tests.flatMap((test) => {
    const file = measured.get(test);
    return file !== undefined && file.failed === undefined ? [file] : [];
  });
  const rank = ({ path, ms }: FileResult) => (path === first ? -1 : ms);
  let ms = 0;
  const run: string[] = [];
  const slow: string[] = [];
  for (const file of passing.sort((a, b) => rank(a) - rank(b))) {
    const fits = run.length === 0 || ms + file.ms <= ALLOWANCE_MS;
    (fits ? run : slow).push(file.path);
    if (fits) ms += file.ms;
  }
  return { run, slow, ms };
}

async function runOne(
  workspace: Workspace,
  mutation: Mutation,
  source: string,
  { run, ms }: ReturnType<typeof affordable>,
  leftMs: number,
): Promise<MutationResult> {
  const { start: _, end: __, replacement: ___, ...told } = mutation;
  const patienceMs = START_MS + PATIENCE * ms;
  if (leftMs < START_MS) return { ...told, outcome: 'not run', killedBy: undefined, seconds: 0 };
  if (run.length === 0) return { ...told, outcome: 'survived', killedBy: undefined, seconds: 0 };
  const begun = performance.now();
  workspace.compile(mutation.path, mutate(source, mutation));
  const { stopped, files } = await workspace.jest(run, Math.min(patienceMs, leftMs), [
    '--runInBand',
    '--bail',
  ]);
  workspace.compile(mutation.path, source);
  const seconds = secondsSince(begun);
  if (stopped) {
    const outcome = patienceMs <= leftMs ? 'timed out' : 'not run';
    return { ...told, outcome, killedBy: undefined, seconds };
  }
  if (files === undefined) return { ...told, outcome: 'killed', killedBy: 'the end of jest', seconds };
  const failed = files.find((file) => file.failed !== undefined);
  const killedBy = failed && `${failed.path}: ${failed.failed}`;
  return { ...told, outcome: failed === undefined ? 'survived' : 'killed', killedBy, seconds };
}

async function main(options: MutationOptions): Promise<void> {
  const texts = readTexts();
  const sources = new Map([...texts].filter(([path]) => path.startsWith('src/')));
  const before =
    options.against === undefined
      ? undefined
      : (JSON.parse(readFileSync(options.against, 'utf8')) as MutationResults);
  const numbered = chosen(options, sources, before).map((mutation, index) => ({
    mutation,
    number: index + 1,
  }));
  const wanted = numbered.filter(({ number }) => options.only === undefined || options.only === number);
  if (wanted.length === 0)
    throw new Error(`there are ${numbered.length} mutations and no number ${options.only}`);
  if (options.list) {
    for (const { mutation, number } of wanted)
      say(`${number} ${mutation.path}:${mutation.line}: ${mutation.change} in "${mutation.text}"`);
    return;
  }
  const tests = new TestsOfRooms(texts);
  const testsOf = new Map(wanted.map(({ mutation: { path } }) => [path, tests.of(path)]));
  const workspaces = Array.from({ length: Math.min(options.workers, wanted.length) }, () => new Workspace());
  const removeAll = () => {
    for (const workspace of workspaces) workspace.remove();
  };
  process.once('exit', removeAll);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  // Mutated files are compiled by esbuild, so the tests first run with all of them compiled so.
  for (const workspace of workspaces)
    for (const path of testsOf.keys()) workspace.compile(path, texts.get(path) as string);
  const measured = await measure(
    workspaces[0] as Workspace,
    [...new Set([...testsOf.values()].flat())],
    options.workers,
  );
  const failing = [...measured.values()].flatMap(({ path, failed }) => (failed === undefined ? [] : [path]));
  for (const path of failing) tell(`left out, since it fails without a mutation: ${path}`);

  const killers = new Map(before?.mutations.map((one) => [identityOf(one), one.killedBy?.split(': ')[0]]));
  const results = new Map<number, MutationResult>();
  const slow = new Set<string>();
  const inOrder = () => [...results].sort(([a], [b]) => a - b).map(([, one]) => one);
  const write = () => {
    const minutes = Math.round((performance.now() - startedMs) / 60_000);
    const all: MutationResults = {
      seed: before?.seed ?? options.seed,
      minutes,
      failing,
      slow: [...slow].sort(),
      mutations: inOrder(),
    };
    if (options.out !== undefined) writeFileSync(options.out, `${JSON.stringify(all, undefined, 2)}\n`);
  };
  const queue = wanted[Symbol.iterator]();
  await Promise.all(
    workspaces.map(async (workspace) => {
      for (const { mutation, number } of queue) {
        const killer = killers.get(identityOf(mutation));
        const plan = affordable(testsOf.get(mutation.path) as string[], measured, killer);
        for (const path of plan.slow) slow.add(path);
        const leftMs = startedMs + options.minutes * 60_000 - performance.now();
        const result = await runOne(workspace, mutation, texts.get(mutation.path) as string, plan, leftMs);
        results.set(number, result);
        say(describeResult(number, result));
        tell(`${results.size} of ${wanted.length} mutations`);
        write();
      }
    }),
  );
  if (slow.size > 0) say(`\ntoo slow for some mutations, and left out there: ${[...slow].sort().join(', ')}`);
  say(`\n${tableOf(inOrder())}`);
  if (before === undefined) return;
  const worse = onlyAfterwards(before.mutations, inOrder());
  say(`${worse.length} survive only now`);
  for (const one of worse) say(`  ${one.path}:${one.line}: ${one.change} in "${one.text}"`);
  process.exitCode = worse.length > 0 ? 1 : 0;
}

try {
  const options = readMutationOptions(process.argv.slice(2));
  if (options === undefined) process.stdout.write(HELP);
  else
    main(options).catch((error: Error) => {
      process.stderr.write(`weir: ${error.message}\n`);
      process.exitCode = 2;
    });
} catch (error) {
  process.stderr.write(`weir: ${(error as Error).message}\n`);
  process.exitCode = 2;
}
