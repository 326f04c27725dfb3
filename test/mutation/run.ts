// `npm run mutate`: checks that the tests of each room detect errors in its source. See docs/internals/testing.md.
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
  newSurvivors,
  tableOf,
} from './results.js';
import { draw, roomOf, sharesOf } from './sample.js';
import { TestsOfRooms } from './tests-of-rooms.js';
import { Workspace } from './workspace.js';

/** Maximum time of all tests of a mutation together, measured without the mutation. */
const MAX_TESTS_MS = 30_000;
/** A run is stopped after its normal duration times this factor, plus the time that jest needs to start. */
const TIMEOUT_FACTOR = 2.5;
const JEST_START_MS = 15_000;

const startedMs = performance.now();
const print = (line: string) => process.stdout.write(`${line}\n`);
const printProgress = (line: string) => process.stderr.write(`weir: ${line}, ${secondsSince(startedMs)} s\n`);
const secondsSince = (ms: number) => Math.round((performance.now() - ms) / 1000);

/** Returns the contents of all source files by path, except the page, which is not compiled file by file. */
function readTexts(): Map<string, string> {
  const paths = ['src', 'test'].flatMap((top) =>
    readdirSync(join(repositoryRoot, top), { recursive: true, encoding: 'utf8' }).map((one) =>
      join(top, one),
    ),
  );
  const selected = paths.filter((path) => path.endsWith('.ts') && !path.startsWith('src/page/'));
  return new Map(selected.map((path) => [path, readFileSync(join(repositoryRoot, path), 'utf8')]));
}

/** Returns the mutations of the earlier results, found by their identity, or draws a sample. */
function chooseMutations(
  options: MutationOptions,
  sources: ReadonlyMap<string, string>,
  earlier?: MutationResults,
): Mutation[] {
  const all = mutationsOf(sources);
  if (earlier !== undefined) {
    const byIdentity = new Map(all.map((mutation) => [identityOf(mutation), mutation]));
    const missing = earlier.mutations.filter((result) => !byIdentity.has(identityOf(result)));
    for (const { path, line, change, text } of missing)
      print(`- ${path}:${line}: ${change} in "${text}": no longer in the source`);
    return earlier.mutations.flatMap((result) => byIdentity.get(identityOf(result)) ?? []);
  }
  const lines = new Map(options.rooms.map((room) => [room, 0]));
  for (const [path, text] of sources) {
    const sum = lines.get(roomOf(path));
    if (sum !== undefined) lines.set(roomOf(path), sum + text.split('\n').length);
  }
  for (const [room, count] of lines)
    if (count === 0) throw new Error(`--rooms: src/${room} contains no source files`);
  return draw(all, sharesOf(lines, options.count), options.seed);
}

/** Runs each test file without a mutation, and returns the results by path. */
async function measure(workspace: Workspace, tests: readonly string[], workers: number) {
  printProgress(`running ${tests.length} test files without a mutation`);
  const limitMs = 20 * 60_000;
  const { files } = await workspace.jest(tests, limitMs, ['--maxWorkers', `${workers}`]);
  if (files === undefined)
    throw new Error('jest did not end, or wrote no results, although the source is not mutated');
  return new Map(files.map((file) => [file.path, file]));
}

/**
 * Divides the tests that pass without a mutation into tests to run and tests that are too slow. The tests to run are
 * the fastest ones, and take at most {@link MAX_TESTS_MS} together. At least one test runs. `first` is the test that
 * killed the mutation earlier. It runs first.
 */
function planTests(
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
    const fits = run.length === 0 || ms + file.ms <= MAX_TESTS_MS;
    (fits ? run : slow).push(file.path);
    if (fits) ms += file.ms;
  }
  return { run, slow, ms };
}

async function runOne(
  workspace: Workspace,
  mutation: Mutation,
  source: string,
  { run, ms }: ReturnType<typeof planTests>,
  remainingMs: number,
): Promise<MutationResult> {
  const { start: _, end: __, replacement: ___, ...described } = mutation;
  const timeoutMs = JEST_START_MS + TIMEOUT_FACTOR * ms;
  if (remainingMs < JEST_START_MS)
    return { ...described, outcome: 'not run', killedBy: undefined, seconds: 0 };
  if (run.length === 0) return { ...described, outcome: 'survived', killedBy: undefined, seconds: 0 };
  const runStartMs = performance.now();
  workspace.compile(mutation.path, mutate(source, mutation));
  const { stopped, files } = await workspace.jest(run, Math.min(timeoutMs, remainingMs), [
    '--runInBand',
    '--bail',
  ]);
  workspace.compile(mutation.path, source);
  const seconds = secondsSince(runStartMs);
  if (stopped) {
    const outcome = timeoutMs <= remainingMs ? 'timed out' : 'not run';
    return { ...described, outcome, killedBy: undefined, seconds };
  }
  if (files === undefined) return { ...described, outcome: 'killed', killedBy: 'a crash of jest', seconds };
  const failed = files.find((file) => file.failed !== undefined);
  const killedBy = failed && `${failed.path}: ${failed.failed}`;
  return { ...described, outcome: failed === undefined ? 'survived' : 'killed', killedBy, seconds };
}

async function main(options: MutationOptions): Promise<void> {
  const texts = readTexts();
  const sources = new Map([...texts].filter(([path]) => path.startsWith('src/')));
  const earlier =
    options.against === undefined
      ? undefined
      : (JSON.parse(readFileSync(options.against, 'utf8')) as MutationResults);
  const numbered = chooseMutations(options, sources, earlier).map((mutation, index) => ({
    mutation,
    number: index + 1,
  }));
  const selected = numbered.filter(({ number }) => options.only === undefined || options.only === number);
  if (selected.length === 0)
    throw new Error(
      `--only: there is no mutation ${options.only}; the sample has ${numbered.length} mutations`,
    );
  if (options.list) {
    for (const { mutation, number } of selected)
      print(`${number} ${mutation.path}:${mutation.line}: ${mutation.change} in "${mutation.text}"`);
    return;
  }
  const tests = new TestsOfRooms(texts);
  const testsOf = new Map(selected.map(({ mutation: { path } }) => [path, tests.of(path)]));
  const workspaces = Array.from(
    { length: Math.min(options.workers, selected.length) },
    () => new Workspace(),
  );
  const removeAll = () => {
    for (const workspace of workspaces) workspace.remove();
  };
  process.once('exit', removeAll);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  // esbuild compiles the mutated files, so the first run of the tests also uses files that esbuild compiled.
  for (const workspace of workspaces)
    for (const path of testsOf.keys()) workspace.compile(path, texts.get(path) as string);
  const measured = await measure(
    workspaces[0] as Workspace,
    [...new Set([...testsOf.values()].flat())],
    options.workers,
  );
  const failing = [...measured.values()].flatMap(({ path, failed }) => (failed === undefined ? [] : [path]));
  for (const path of failing) printProgress(`${path} fails without a mutation, and is not used`);

  const killers = new Map(
    earlier?.mutations.map((result) => [identityOf(result), result.killedBy?.split(': ')[0]]),
  );
  const results = new Map<number, MutationResult>();
  const slow = new Set<string>();
  const sortedResults = () => [...results].sort(([a], [b]) => a - b).map(([, one]) => one);
  const write = () => {
    const minutes = Math.round((performance.now() - startedMs) / 60_000);
    const all: MutationResults = {
      seed: earlier?.seed ?? options.seed,
      minutes,
      failing,
      slow: [...slow].sort(),
      mutations: sortedResults(),
    };
    if (options.out !== undefined) writeFileSync(options.out, `${JSON.stringify(all, undefined, 2)}\n`);
  };
  const queue = selected[Symbol.iterator]();
  await Promise.all(
    workspaces.map(async (workspace) => {
      for (const { mutation, number } of queue) {
        const killer = killers.get(identityOf(mutation));
        const plan = planTests(testsOf.get(mutation.path) as string[], measured, killer);
        for (const path of plan.slow) slow.add(path);
        const remainingMs = startedMs + options.minutes * 60_000 - performance.now();
        const result = await runOne(
          workspace,
          mutation,
          texts.get(mutation.path) as string,
          plan,
          remainingMs,
        );
        results.set(number, result);
        print(describeResult(number, result));
        printProgress(`${results.size} of ${selected.length} mutations`);
        write();
      }
    }),
  );
  if (slow.size > 0)
    print(`\nNot run for some mutations, because they are too slow: ${[...slow].sort().join(', ')}`);
  print(`\n${tableOf(sortedResults())}`);
  if (earlier === undefined) return;
  const survivors = newSurvivors(earlier.mutations, sortedResults());
  print(`New survivors: ${survivors.length}`);
  for (const { path, line, change, text } of survivors) print(`  ${path}:${line}: ${change} in "${text}"`);
  process.exitCode = survivors.length > 0 ? 1 : 0;
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
