/* `npm run stall` runs every case for ten seconds, and prints the table. */
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { closeAll } from '../support/process/close-later.js';
import { stopAllProcesses } from '../support/process/processes.js';
import { fetchTools } from '../support/process/tools.js';
import { STALL_GROUPS } from './all-groups.js';
import { GroupRun } from './group-run.js';
import { type Row, rowLine, textTable } from './table.js';

const HELP = `Usage: npm run stall -- [options] [text…]

Sends valid but expensive input to weir, measures the delay of another caller's requests, and prints a table
(docs/internals/testing.md). Runs the cases whose names contain one of the texts, or all cases without a text.

  --seconds N   duration of each attack (default: 10)
  --list        print the names of the cases
`;

interface Options {
  readonly ms: number;
  readonly list: boolean;
  readonly parts: readonly string[];
}

/** Returns the options, the help, or an error message if the arguments are invalid. */
function readOptions(args: readonly string[]): Options | string {
  const parts: string[] = [];
  let seconds = 10;
  let list = false;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as string;
    if (arg === '--help') return HELP;
    if (arg === '--seconds') {
      seconds = Number(args[++at]);
      if (!(seconds > 0)) return `--seconds: "${args[at]}" is not a positive number`;
    } else if (arg === '--list') list = true;
    else if (arg.startsWith('-')) return `unknown option ${arg}; --help lists the options`;
    else parts.push(arg);
  }
  return { ms: seconds * 1000, list, parts };
}

/** Read once: after {@link pin}, the number counts only the core that this process may use. */
const CORES = availableParallelism();

/** Moves all threads of a process to a core. Returns false if this machine cannot do it. */
function pin(pid: number, core: number): boolean {
  if (CORES < 2) return false;
  return spawnSync('taskset', ['-a', '-c', '-p', String(core), String(pid)]).status === 0;
}

async function runAll({ ms, list, parts }: Options): Promise<Row[]> {
  const rows: Row[] = [];
  for (const group of STALL_GROUPS) {
    const cases = group.cases.filter(
      ({ name }) => parts.length === 0 || parts.some((part) => name.includes(part)),
    );
    const run = new GroupRun(group, {
      ...{ ms, judgesDelays: true },
      started: ({ weir }) => pin(weir.process.pid, 0),
    });
    for (const one of cases) {
      if (list) {
        process.stdout.write(`${one.name}\n`);
        continue;
      }
      const row = await run.run(one);
      rows.push(row);
      process.stderr.write(`${rowLine(row)}\n`);
    }
    await closeAll();
  }
  return rows;
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (typeof options === 'string') {
    process.stdout.write(`${options}\n`);
    process.exitCode = options === HELP ? 0 : 2;
    return;
  }
  if (!options.list) {
    fetchTools(['redis-server']);
    // Redis and the clients inherit this core. The server moves to another one.
    if (!pin(process.pid, 1)) process.stderr.write('weir and the clients share the cores of this machine\n');
  }
  try {
    const rows = await runAll(options);
    if (rows.length > 0) process.stdout.write(`${textTable(rows)}\n`);
    if (rows.some(({ failures }) => failures.length > 0)) process.exitCode = 1;
  } finally {
    await stopAllProcesses();
  }
}

void main();
