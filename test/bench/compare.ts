import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeAll } from '../support/process/close-later.js';
import { stopAllProcesses } from '../support/process/processes.js';
import { fetchTools, repositoryRoot, toolPath, variableOf } from '../support/process/tools.js';
import { type Drift, driftLine, writeDrifts } from './drift.js';
import { type BenchCase, CASES } from './load/cases.js';
import { measureCase } from './load/measure-case.js';
import { startTargets } from './load/targets.js';
import { median } from './micro/measure.js';
import { type BenchOptions, matchesFilter, readOptions, selectCases } from './options.js';
import { microBenches, runMicro } from './run-micro.js';

/** The default base of comparisons, to detect slow growth over many small changes. */
const FIXED_COMMIT = '1554e4d';

/** Rounds of each process. Only the last round counts, because V8 still compiles code during the others. */
const ROUNDS_PER_PROCESS = 3;

/** Minimum number of rounds for marks in micro, because fewer rounds do not show the noise. */
const MIN_ROUNDS = 3;
/** Minimum difference for marks in micro. */
const MIN_DIFFERENCE = 0.05;

const HELP = `Usage: npm run bench:compare [-- [<base> <branch>] [micro|load] [options] [part of a case's name …]]

Builds two revisions, each with its own packages, runs the cases on both in turns, and prints the ratio of the CPU times
(branch / base). Default revisions: ${FIXED_COMMIT} (a fixed commit) and HEAD.

load   Starts new processes for each round. Only the last of their ${ROUNDS_PER_PROCESS} loads counts.
       Runs the base twice: A/A is the range of ratios between the two in the middle half of the rounds.
       Marks ratios outside this range.
micro  Marks ratios that differ from 1 by more than ${100 * MIN_DIFFERENCE} %, if the rounds of the two
       revisions do not overlap. Needs at least ${MIN_ROUNDS} rounds.

Cases: a complete name selects one case, and other texts select all cases that contain the text. The default is
"one hot key" and "1,000 tenants" of load, and all cases of micro.
Options: --quick --rounds N --seconds N --many N --transports A,B, as in npm run bench
         --write   writes the results of load to docs/reference/cost.md
`;

/** Programs that the cases need. */
const TOOLS = ['redis-server', 'h2load', 'envoy'];
const DEFAULT_LOAD_CASES = ['one hot key', '1,000 tenants'];

interface Checkout {
  readonly name: string;
  readonly folder: string;
}

/** Median and range of the rounds of a micro case. */
interface Summary {
  readonly rounds: number;
  readonly value: number;
  readonly range: readonly [number, number];
}

const printProgress = (line: string) => process.stderr.write(`${line}\n`);

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: repositoryRoot,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/**
 * Checks out and builds a revision. It uses the packages of this checkout if package-lock.json is the same. Otherwise,
 * it installs the packages of the revision.
 */
function checkOut(parent: string, label: string, revision: string): Checkout {
  const folder = join(parent, label);
  git('worktree', 'add', '--detach', folder, revision);
  const lock = `${revision}:package-lock.json`;
  const isSame = git('show', lock) === git('show', 'HEAD:package-lock.json');
  if (isSame) symlinkSync(join(repositoryRoot, 'node_modules'), join(folder, 'node_modules'));
  printProgress(
    isSame
      ? `building ${revision}`
      : `installing the packages of ${revision}, which differ from the current ones, and building it`,
  );
  execFileSync(process.execPath, [isSame ? '.ci/build.mjs' : '.ci/prepare.mjs'], {
    cwd: folder,
    stdio: ['ignore', process.stderr.fd, 'inherit'],
  });
  return { name: `${label} (${revision})`, folder };
}

/** Prints the ratio of a micro case. */
function printRatio(name: string, base: Summary, branch: Summary): void {
  const ratio = branch.value / base.value;
  const isDisjoint =
    base.rounds >= MIN_ROUNDS && (branch.range[0] > base.range[1] || branch.range[1] < base.range[0]);
  const marked = isDisjoint && Math.abs(ratio - 1) > MIN_DIFFERENCE;
  const verdict = marked ? (ratio > 1 ? '  SLOWER' : '  faster') : '';
  const text = (value: number) => value.toFixed(0).padStart(10);
  console.log(
    `${name.padEnd(64)} ${text(base.value)} ${text(branch.value)} ns ${ratio.toFixed(2).padStart(6)}${verdict}`,
  );
}

function summarize(values: readonly number[]): Summary {
  return { rounds: values.length, value: median(values), range: [Math.min(...values), Math.max(...values)] };
}

async function compareMicro(
  checkouts: readonly [Checkout, Checkout],
  filters: readonly string[],
  options: BenchOptions,
): Promise<void> {
  for (const bench of microBenches()) {
    const folders = checkouts.map(({ folder }) => join(folder, 'build/test/bench'));
    if (!folders.every((folder) => existsSync(join(folder, 'micro', `${bench}.bench.js`)))) continue;
    const allCases = filters.length === 0 || matchesFilter(bench, filters);
    const found = [new Map<string, number[]>(), new Map<string, number[]>()];
    for (let round = 0; round < options.rounds; round++) {
      for (const [side, folder] of folders.entries()) {
        printProgress(`micro ${bench}: round ${round + 1} of ${options.rounds}, ${checkouts[side]?.name}`);
        for (const { name, value, unit } of await runMicro(
          bench,
          allCases ? [] : filters,
          options.quick,
          folder,
        )) {
          if (unit !== 'ns') continue;
          const values = found[side]?.get(name) ?? [];
          values.push(value);
          found[side]?.set(name, values);
        }
      }
    }
    for (const [name, base] of found[0] as Map<string, number[]>) {
      const branch = found[1]?.get(name);
      if (branch !== undefined) printRatio(`${bench}: ${name}`, summarize(base), summarize(branch));
    }
  }
}

/** Returns the minimum and maximum of the middle half of `values`. */
function middleHalf(values: readonly number[]): readonly [number, number] {
  const sorted = values.toSorted((one, other) => one - other);
  const out = Math.floor(sorted.length / 4);
  return [sorted[out] as number, sorted[sorted.length - 1 - out] as number];
}

/** CPU microseconds per decision in each round, of the base, the branch, and the second run of the base. */
type RoundCosts = readonly [base: number[], branch: number[], repeatedBase: number[]];

/** Returns the cost of the branch relative to the base in a load case. */
function driftOf(name: string, [base, branch, repeatedBase]: RoundCosts): Drift {
  const baseMicros = median(base);
  const branchMicros = median(branch);
  const baseRatios = repeatedBase.map((micros, round) => micros / (base[round] as number));
  return {
    name,
    base: baseMicros,
    branch: branchMicros,
    ratio: branchMicros / baseMicros,
    baseRatios: middleHalf(baseRatios),
  };
}

/**
 * Runs a round of a case, and adds the cost of each store to `found`. The round uses new processes, because two
 * processes of one revision can differ by 10 % during their whole lifetime.
 */
async function runRound(
  bench: BenchCase,
  checkouts: readonly [Checkout, Checkout, Checkout],
  round: number,
  options: BenchOptions,
  found: Map<string, RoundCosts>,
): Promise<void> {
  const { transports } = options;
  try {
    const targets = await startTargets(bench, { transports, external: undefined, checkouts });
    // Alternate the order, so that no server always runs after the same other server.
    const inTurn = round % 2 === 0 ? targets : targets.toReversed();
    const printRound = (line: string) => printProgress(`round ${round + 1} of ${options.rounds}: ${line}`);
    const rows = await measureCase(bench, inTurn, { ...options, rounds: ROUNDS_PER_PROCESS }, printRound);
    for (const row of rows) {
      const side = checkouts.findIndex(({ name }) => row.target.endsWith(`, ${name}`));
      const target = row.target.replace(`, ${checkouts[side]?.name}`, '');
      const rounds: RoundCosts = found.get(target) ?? [[], [], []];
      rounds[side]?.push(row.rounds.at(-1) as number);
      found.set(target, rounds);
    }
  } finally {
    await closeAll();
  }
}

async function compareLoad(
  [base, branch]: readonly [Checkout, Checkout],
  filters: readonly string[],
  options: BenchOptions,
): Promise<readonly Drift[]> {
  const checkouts = [base, branch, { name: `${base.name}, repeated`, folder: base.folder }] as const;
  const drifts: Drift[] = [];
  for (const bench of selectCases(CASES, filters)) {
    const found = new Map<string, RoundCosts>();
    try {
      for (let round = 0; round < options.rounds; round++) {
        await runRound(bench, checkouts, round, options, found);
      }
    } catch (error) {
      // An earlier commit may not support a setting of the case.
      printProgress(`${bench.name}: skipped: ${(error as Error).message}`);
      console.log(`${bench.name}: skipped, because a server failed`);
      continue;
    }
    for (const [target, rounds] of found) {
      drifts.push(driftOf(`${bench.name}: ${target}`, rounds));
      console.log(driftLine(drifts.at(-1) as Drift));
    }
  }
  return drifts;
}

async function main(): Promise<void> {
  const args = process.argv.slice(2);
  const isRevision = (word: string | undefined) => word !== undefined && !/^(-|micro$|load$)/.test(word);
  const hasRevisions = isRevision(args[0]) && isRevision(args[1]);
  const [base, branch] = hasRevisions ? (args as [string, string]) : [FIXED_COMMIT, 'HEAD'];
  const options = readOptions(hasRevisions ? args.slice(2) : args);
  if (options === undefined || options.target !== undefined) {
    process.stdout.write(HELP);
    process.exitCode = options === undefined ? 0 : 2;
    return;
  }
  fetchTools(TOOLS);
  // The checkouts contain no tools, so their benchmarks get the paths as variables.
  for (const tool of TOOLS) process.env[variableOf(tool)] = toolPath(tool);
  const parent = mkdtempSync(join(tmpdir(), 'weir-compare-'));
  try {
    const checkouts = [checkOut(parent, 'base', base), checkOut(parent, 'branch', branch)] as const;
    console.log(`${''.padEnd(64)} ${'base'.padStart(10)} ${'branch'.padStart(10)}     ratio`);
    if (options.load) {
      const filters = options.filters.length > 0 ? options.filters : DEFAULT_LOAD_CASES;
      const drifts = await compareLoad(checkouts, filters, options);
      if (options.write) writeDrifts(drifts, base, options);
    }
    if (options.micro) await compareMicro(checkouts, options.filters, options);
  } finally {
    await stopAllProcesses();
    for (const label of ['base', 'branch']) {
      const folder = join(parent, label);
      if (existsSync(folder)) git('worktree', 'remove', '--force', folder);
    }
    rmSync(parent, { recursive: true, force: true });
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
