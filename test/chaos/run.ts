/* `npm run chaos`: runs all Redis faults for minutes, and prints a table. */
import { parseArgs } from 'node:util';
import { closeAll } from '../support/process/close-later.js';
import { stopAllProcesses } from '../support/process/processes.js';
import { fetchTools } from '../support/process/tools.js';
import { print, randomSeed } from './long-run.js';
import { textTable, writeFaults } from './report/table.js';
import type { RunResult } from './run-faults.js';
import { SHORT_SCALE } from './short-scale.js';
import { SUITES, type Suite } from './suites.js';

const HELP = `Usage: npm run chaos [-- options]

Causes all kinds of Redis faults while callers send requests to two weir servers. Checks every answer, and prints a
table. The seed determines the faults and their durations. See docs/internals/testing.md.

  --minutes N        minimum duration of all topologies together; each fault runs at least once (5)
  --seed S           repeats the faults of an earlier run (random; printed at the start)
  --topology NAME    runs only one topology: ${SUITES.map(({ name }) => name).join(', ')}
  --only TEXT        runs only faults with this text in their names
  --short            uses the short durations of npm test
  --record           writes the table to docs/reference/faults.md
  --list             prints the names of the faults
  --help             prints this text
`;

interface Options {
  readonly minutes: number;
  readonly seed: number;
  readonly topology: string | undefined;
  readonly only: string | undefined;
  readonly short: boolean;
  readonly record: boolean;
  readonly list: boolean;
}

/** Reads the command line. Returns an error message, or the help text, instead of options. */
function readOptions(args: readonly string[]): Options | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        minutes: { type: 'string', default: '5' },
        seed: { type: 'string' },
        topology: { type: 'string' },
        only: { type: 'string' },
        short: { type: 'boolean', default: false },
        record: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) return HELP;
    const minutes = Number(values.minutes);
    if (!(minutes >= 0)) return `--minutes: "${values.minutes}" is not a number of at least 0`;
    const seed = values.seed === undefined ? randomSeed() : Number(values.seed);
    if (!Number.isSafeInteger(seed)) return `--seed: "${values.seed}" is not a whole number`;
    const { topology, only, short, record, list } = values;
    if (topology !== undefined && !SUITES.some(({ name }) => name === topology))
      return `--topology: "${topology}" is not one of ${SUITES.map(({ name }) => name).join(', ')}`;
    return { minutes, seed, topology, only, short, record, list };
  } catch (error) {
    return `${(error as Error).message}\nRun "npm run chaos -- --help" for the options.`;
  }
}

/** Returns the suites that contain a selected fault. */
function suitesOf({ topology, only }: Options): Suite[] {
  return SUITES.filter(
    ({ name, faults }) =>
      (topology === undefined || name === topology) &&
      (only === undefined || faults.some((fault) => fault.includes(only))),
  );
}

async function runAll(options: Options): Promise<void> {
  const { seed, minutes, only, short } = options;
  const suites = suitesOf(options);
  const results: { name: Suite['name']; result: RunResult }[] = [];
  if (suites.length === 0) print(`No fault has "${only}" in its name. --list prints all names.`);
  let failed = suites.length === 0;
  print(`seed ${seed}`);
  for (const suite of suites) {
    const impossible = suite.impossible();
    if (impossible !== undefined) {
      print(`skipped ${suite.name}: ${impossible}`);
      continue;
    }
    const result = await suite.run({
      seed,
      ms: (minutes * 60_000) / suites.length,
      scale: short ? SHORT_SCALE : 1,
      ...(only !== undefined && { only }),
      print,
    });
    results.push({ name: suite.name, result });
    print(textTable(result.rows));
    if (result.failures.length === 0) continue;
    failed = true;
    print(`FAILED with ${result.failures.length} failures:\n  ${result.failures.join('\n  ')}`);
    const more = [...(short ? ['--short'] : []), ...(only === undefined ? [] : [`--only '${only}'`])].join(
      ' ',
    );
    print(
      `To repeat: npm run chaos -- --minutes ${minutes} --seed ${seed} --topology ${suite.name} ${more}`.trimEnd(),
    );
  }
  if (failed) process.exitCode = 1;
  else if (options.record) {
    const topologies = results.map(({ name, result: { baseline, rows } }) => ({ name, baseline, rows }));
    writeFaults({ node: process.version, seed, minutes, topologies });
  }
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (typeof options === 'string') {
    print(options);
    process.exitCode = options === HELP ? 0 : 2;
    return;
  }
  if (options.list) {
    for (const { name, faults } of SUITES) for (const fault of faults) print(`${name}: ${fault}`);
    return;
  }
  fetchTools(['redis-server', 'valkey-server', 'stepping-clock']);
  try {
    await runAll(options);
  } finally {
    await closeAll();
    await stopAllProcesses();
  }
}

void main();
