import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stopAllProcesses } from '../support/process/processes.js';
import { fetchTools, repositoryRoot, toolPath, variableOf } from '../support/process/tools.js';
import { type Drift, driftLine, writeDrifts } from './drift.js';
import { type BenchCase, CASES } from './load/cases.js';
import { measureCase } from './load/measure-case.js';
import { startTargets } from './load/targets.js';
import { median } from './micro/measure.js';
import { type BenchOptions, isWanted, readOptions, wantedOf } from './options.js';
import { microBenches, runMicro } from './run-micro.js';

/** Every revision is held against this one, so that a drift over many small steps shows. */
export const YARDSTICK = '1554e4d';

/** Loads of each process, of which the last one counts: before, V8's compilers take a part of the CPU time. */
const ROUNDS_OF_A_PROCESS = 3;

const HELP = `Usage: npm run bench:compare [-- [<base> <branch>] [micro|load] [options] [part of a case's name …]]

Checks out two revisions into folders of their own, with their packages, builds both, runs the cases on both in turns
and prints the ratio of the CPU time (branch / base). Without revisions: ${YARDSTICK}, the fixed one, and HEAD.
Load runs the base twice, and starts new processes for each round, of whose ${ROUNDS_OF_A_PROCESS} loads the last one counts.
A/A is the middle half of what the rounds of the one base cost against those of the other: a ratio beyond that is
marked. Of micro a ratio is marked where the rounds of the two do not overlap and it is off by more than 5 % (at least
3 rounds).
Cases: the one of that name, else those whose names hold the part; without any, "one hot key" and "1,000 tenants" of
load and all of micro.
Options: --quick --rounds N --seconds N --many N --transports A,B, as in npm run bench; --write keeps the figures of
load in docs/reference/cost.md.
`;

/** What the cases need beside weir. */
const TOOLS = ['redis-server', 'h2load', 'envoy'];
const USUAL_LOAD = ['one hot key', '1,000 tenants'];
/** Fewer rounds say nothing about noise. */
const LEAST_ROUNDS = 3;
/** Smaller differences are not worth a word, however steady. */
const LEAST_DIFFERENCE = 0.05;

interface Checkout {
  readonly name: string;
  readonly folder: string;
}

interface Measured {
  readonly rounds: number;
  readonly value: number;
  readonly range: readonly [number, number];
}

const say = (line: string) => process.stderr.write(`${line}\n`);

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: repositoryRoot,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Packages are those of this checkout, where they are the same ones; else the revision gets its own. */
function checkOut(parent: string, label: string, revision: string): Checkout {
  const folder = join(parent, label);
  git('worktree', 'add', '--detach', folder, revision);
  const lock = `${revision}:package-lock.json`;
  const isSame = git('show', lock) === git('show', 'HEAD:package-lock.json');
  if (isSame) symlinkSync(join(repositoryRoot, 'node_modules'), join(folder, 'node_modules'));
  say(
    isSame
      ? `building ${revision}`
      : `installing the packages of ${revision}, which are others, and building it`,
  );
  execFileSync(process.execPath, [isSame ? '.ci/build.mjs' : '.ci/prepare.mjs'], {
    cwd: folder,
    stdio: ['ignore', process.stderr.fd, 'inherit'],
  });
  return { name: `${label} (${revision})`, folder };
}

/** Prints the ratio of a micro case. */
function printRatio(name: string, base: Measured, branch: Measured): void {
  const ratio = branch.value / base.value;
  const apart =
    base.rounds >= LEAST_ROUNDS && (branch.range[0] > base.range[1] || branch.range[1] < base.range[0]);
  const marked = apart && Math.abs(ratio - 1) > LEAST_DIFFERENCE;
  const verdict = marked ? (ratio > 1 ? '  SLOWER' : '  faster') : '';
  const text = (value: number) => value.toFixed(0).padStart(10);
  console.log(
    `${name.padEnd(64)} ${text(base.value)} ${text(branch.value)} ns ${ratio.toFixed(2).padStart(6)}${verdict}`,
  );
}

function spread(values: readonly number[]): Measured {
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
    const whole = filters.length === 0 || isWanted(bench, filters);
    const found = [new Map<string, number[]>(), new Map<string, number[]>()];
    for (let round = 0; round < options.rounds; round++) {
      for (const [side, folder] of folders.entries()) {
        say(`micro ${bench}: round ${round + 1} of ${options.rounds}, ${checkouts[side]?.name}`);
        for (const { name, value, unit } of await runMicro(
          bench,
          whole ? [] : filters,
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
      if (branch !== undefined) printRatio(`${bench}: ${name}`, spread(base), spread(branch));
    }
  }
}

/** The two values between which the middle half of `values` lies. */
function middleHalf(values: readonly number[]): readonly [number, number] {
  const sorted = values.toSorted((one, other) => one - other);
  const out = Math.floor(sorted.length / 4);
  return [sorted[out] as number, sorted[sorted.length - 1 - out] as number];
}

/** CPU microseconds per decision in each round: of the base, the branch, and the base again. */
type RoundsOf = readonly [base: number[], branch: number[], again: number[]];

/** What a branch costs beside its base in one load case, by a base that ran twice. */
function driftOf(name: string, [base, branch, again]: RoundsOf): Drift {
  const one = median(base);
  const other = median(branch);
  const same = again.map((micros, round) => micros / (base[round] as number));
  return { name, base: one, branch: other, ratio: other / one, same: middleHalf(same) };
}

/**
 * Runs a round of a case in processes of its own and adds what each store cost to `found`. Two processes of one
 * revision may differ by 10 % for as long as they run: rounds of the same processes say little of the revisions.
 */
async function runRound(
  bench: BenchCase,
  checkouts: readonly [Checkout, Checkout, Checkout],
  round: number,
  options: BenchOptions,
  found: Map<string, RoundsOf>,
): Promise<void> {
  const { transports } = options;
  const targets = await startTargets(bench, { transports, given: undefined, checkouts });
  try {
    // Back and forth, so that none always follows the same other one.
    const inTurn = round % 2 === 0 ? targets.all : targets.all.toReversed();
    const named = (line: string) => say(`round ${round + 1} of ${options.rounds}: ${line}`);
    const rows = await measureCase(bench, inTurn, { ...options, rounds: ROUNDS_OF_A_PROCESS }, named);
    for (const row of rows) {
      const side = checkouts.findIndex(({ name }) => row.target.endsWith(`, ${name}`));
      const target = row.target.replace(`, ${checkouts[side]?.name}`, '');
      const rounds: RoundsOf = found.get(target) ?? [[], [], []];
      rounds[side]?.push(row.rounds.at(-1) as number);
      found.set(target, rounds);
    }
  } finally {
    await targets.stop();
  }
}

async function compareLoad(
  [base, branch]: readonly [Checkout, Checkout],
  filters: readonly string[],
  options: BenchOptions,
): Promise<readonly Drift[]> {
  const checkouts = [base, branch, { name: `${base.name}, again`, folder: base.folder }] as const;
  const drifts: Drift[] = [];
  for (const bench of wantedOf(CASES, filters)) {
    const found = new Map<string, RoundsOf>();
    try {
      for (let round = 0; round < options.rounds; round++) {
        await runRound(bench, checkouts, round, options, found);
      }
    } catch (error) {
      // An earlier commit may not know a setting of the case.
      say(`${bench.name}: left out: ${(error as Error).message}`);
      console.log(`${bench.name}: left out, as a server of one of the two failed`);
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
  const given = process.argv.slice(2);
  const isRevision = (word: string | undefined) => word !== undefined && !/^(-|micro$|load$)/.test(word);
  const named = isRevision(given[0]) && isRevision(given[1]);
  const [base, branch] = named ? (given as [string, string]) : [YARDSTICK, 'HEAD'];
  const options = readOptions(named ? given.slice(2) : given);
  if (options === undefined || options.target !== undefined) {
    process.stdout.write(HELP);
    process.exitCode = options === undefined ? 0 : 2;
    return;
  }
  fetchTools(TOOLS);
  // The checkouts, whose benchmarks run in processes of their own, have none.
  for (const tool of TOOLS) process.env[variableOf(tool)] = toolPath(tool);
  const parent = mkdtempSync(join(tmpdir(), 'weir-compare-'));
  try {
    const checkouts = [checkOut(parent, 'base', base), checkOut(parent, 'branch', branch)] as const;
    console.log(`${''.padEnd(64)} ${'base'.padStart(10)} ${'branch'.padStart(10)}     ratio`);
    if (options.load) {
      const filters = options.filters.length > 0 ? options.filters : USUAL_LOAD;
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
