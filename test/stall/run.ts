/* `npm run stall`: every case for ten seconds, and the table. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stopAllProcesses } from '../support/process/processes.js';
import { fetchTools, repositoryRoot } from '../support/process/tools.js';
import { STALL_GROUPS } from './all-groups.js';
import { yardstickMs } from './calibration.js';
import { GroupRun } from './group-run.js';
import { readRecorded, recordName, recordOf, writeRecorded } from './recorded.js';
import { markdownTable, type Row, rowLine, textTable } from './table.js';
import { SHORT_MS } from './test-attack-ms.js';

const HELP = `npm run stall -- [options] [parts of names]

Attacks weir with everything that is legal to send, beside a caller who must not wait for it, and prints a table (docs/internals/testing.md). The
parts name the cases to run; all without any.

  --seconds N   how long each attack lasts: 10
  --record      a run as short as that of the tests, which keeps what each attack costs in test/stall/recorded.json
  --write       keeps the table in test/stall/results.md
  --list        the names of the cases
`;

interface Options {
  readonly ms: number;
  readonly record: boolean;
  readonly write: boolean;
  readonly list: boolean;
  readonly parts: readonly string[];
}

/** A sentence where the arguments make no sense. */
function readOptions(args: readonly string[]): Options | string {
  const parts: string[] = [];
  let seconds: number | undefined;
  const flags = new Set<string>();
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as string;
    if (arg === '--seconds') {
      seconds = Number(args[++at]);
      if (!(seconds > 0)) return `--seconds wants a positive number, not "${args[at]}"`;
    } else if (['--record', '--write', '--list', '--help'].includes(arg)) flags.add(arg);
    else if (arg.startsWith('-')) return `no option ${arg}; --help lists them`;
    else parts.push(arg);
  }
  if (flags.has('--help')) return HELP;
  const usual = flags.has('--record') ? SHORT_MS : 10_000;
  return {
    ms: seconds === undefined ? usual : seconds * 1000,
    record: flags.has('--record'),
    write: flags.has('--write'),
    list: flags.has('--list'),
    parts,
  };
}

function page(rows: readonly Row[], ms: number, yardstick: number): string {
  return `# What attacks do to others

Written by \`npm run stall -- --write\` on Node.js ${process.version}; each attack lasted ${ms / 1000} s, the yardstick took ${yardstick.toFixed(1)} ms. The columns are
explained in [docs/internals/testing.md](../../docs/internals/testing.md#stalls).

${markdownTable(rows)}
`;
}

async function runAll(options: Options): Promise<Row[]> {
  const yardstick = yardstickMs();
  const before = readRecorded();
  const found: Record<string, number> = {};
  const rows: Row[] = [];
  for (const group of STALL_GROUPS) {
    const cases = group.cases.filter(
      ({ name }) => options.parts.length === 0 || options.parts.some((part) => name.includes(part)),
    );
    const run = new GroupRun(group, {
      ms: options.ms,
      recorded: options.record ? undefined : before,
      yardstick,
    });
    for (const one of cases) {
      for (const connections of one.connections ?? [1, 16]) {
        if (options.list) {
          process.stdout.write(`${one.name} (${connections})\n`);
          continue;
        }
        const row = await run.run(one, connections);
        rows.push(row);
        const { measured } = row;
        process.stderr.write(`${rowLine(row)}\n`);
        found[recordName(measured)] = recordOf(measured, yardstick);
      }
    }
    await run.close();
  }
  // A run of some cases leaves what is recorded of the others.
  if (options.record) writeRecorded(options.parts.length === 0 ? found : { ...before, ...found });
  if (options.write) {
    writeFileSync(join(repositoryRoot, 'test/stall/results.md'), page(rows, options.ms, yardstick));
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
  if (!options.list) fetchTools(['redis-server']);
  try {
    const rows = await runAll(options);
    if (rows.length > 0) process.stdout.write(`${textTable(rows)}\n`);
    if (rows.some(({ faults }) => faults.length > 0)) process.exitCode = 1;
  } finally {
    await stopAllProcesses();
  }
}

void main();
