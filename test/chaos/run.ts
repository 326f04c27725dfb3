/* `npm run chaos`: faults of every kind, minutes long, and the table. */
import { parseArgs } from 'node:util';
import { stopAllProcesses } from '../support/process/processes.js';
import { fetchTools } from '../support/process/tools.js';
import { SUITES, type Suite } from './all-faults.js';
import { textTable, writeFaults } from './report/table.js';
import type { RunResult } from './run-faults.js';
import { SHORT_SCALE } from './short-scale.js';

const HELP = `npm run chaos -- [options]

Two weirs before a real Redis that goes wrong in every way there is, callers that never stop, and a look at each answer;
prints a table (docs/internals/testing.md). All that is chosen comes from the seed.

  --minutes N        how long, for all topologies together; each fault is done once at least: 5
  --seed S           the same faults in the same order, and as long: one that is chosen and printed
  --topology NAME    only ${SUITES.map(({ name }) => name).join(' or ')}
  --only PART        only the faults whose names hold this
  --short            faults as short as in npm test
  --record           keeps the table in docs/reference/faults.md
  --list             the names of the faults
  --help             this text
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

/** A sentence where the arguments make no sense. */
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
    if (!(minutes >= 0)) return `--minutes wants a number, not "${values.minutes}"`;
    const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(values.seed);
    if (!Number.isSafeInteger(seed)) return `--seed wants a whole number, not "${values.seed}"`;
    const { topology, only, short, record, list } = values;
    if (topology !== undefined && !SUITES.some(({ name }) => name === topology))
      return `no topology ${topology}: ${SUITES.map(({ name }) => name).join(', ')}`;
    return { minutes, seed, topology, only, short, record, list };
  } catch (error) {
    return `${(error as Error).message}; --help lists the options`;
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Suites that have a fault to do. */
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
  if (suites.length === 0) say(`no fault has "${only}" in its name; --list names them all`);
  let failed = suites.length === 0;
  say(`seed ${seed}`);
  for (const suite of suites) {
    const impossible = suite.impossible();
    if (impossible !== undefined) {
      say(`skipped: ${impossible}`);
      continue;
    }
    const result = await suite.run({
      seed,
      ms: (minutes * 60_000) / suites.length,
      scale: short ? SHORT_SCALE : 1,
      ...(only !== undefined && { only }),
      say,
    });
    results.push({ name: suite.name, result });
    say(textTable(result.rows));
    if (result.wrongs.length === 0) continue;
    failed = true;
    say(`FAILED: ${result.wrongs.length} wrongs\n  ${result.wrongs.join('\n  ')}`);
    const more = [...(short ? ['--short'] : []), ...(only === undefined ? [] : [`--only '${only}'`])].join(
      ' ',
    );
    say(
      `again: npm run chaos -- --minutes ${minutes} --seed ${seed} --topology ${suite.name} ${more}`.trimEnd(),
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
    say(options);
    process.exitCode = options === HELP ? 0 : 2;
    return;
  }
  if (options.list) {
    for (const { name, faults } of SUITES) for (const fault of faults) say(`${name}: ${fault}`);
    return;
  }
  fetchTools(['redis-server', 'valkey-server', 'stepping-clock']);
  try {
    await runAll(options);
  } finally {
    await stopAllProcesses();
  }
}

void main();
