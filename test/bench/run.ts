import { stopAllProcesses } from '../support/process/processes.js';
import { fetchTools, optionalToolPath } from '../support/process/tools.js';
import { type BenchCase, CASES, isPlain } from './load/cases.js';
import { measureCase, type Row } from './load/measure-case.js';
import { textHeading, textRows } from './load/table.js';
import { startTargets } from './load/targets.js';
import { type BenchOptions, HELP, readOptions, wantedOf } from './options.js';
import { printMicro } from './run-micro.js';
import { writeGrowth, writeResults } from './write-results.js';

/** `npm run bench`, see HELP in options.ts and docs/internals/benchmarks.md: tables on stdout, all else on stderr. */
const say = (line: string) => process.stderr.write(`${line}\n`);

/** The programs that a case needs. */
function toolsOf({ generator, envoy, stores }: BenchCase): readonly string[] {
  return [
    ...(generator === 'h2load' ? ['h2load'] : []),
    ...(envoy ? ['envoy'] : []),
    ...(stores.some((store) => store !== 'memory') ? ['redis-server'] : []),
  ];
}

async function runLoad(options: BenchOptions): Promise<Row[]> {
  const choice = { transports: options.transports, given: options.target, checkouts: [] };
  const rows: Row[] = [];
  const wanted = wantedOf(CASES, options.filters).filter(
    (bench) => options.target === undefined || isPlain(bench),
  );
  if (wanted.length === 0) return rows;
  fetchTools([...new Set(wanted.flatMap(toolsOf))]);
  console.log(
    `CPU time per decision; median of ${options.rounds} rounds of ${options.seconds} s, targets in ` +
      `turns; Node ${process.version}`,
  );
  console.log(textHeading());
  for (const bench of wanted) {
    const missing = toolsOf(bench).find((tool) => optionalToolPath(tool) === undefined);
    if (missing !== undefined) {
      console.log(`${bench.name}\n  skipped: ${missing} is missing`);
      continue;
    }
    const targets = await startTargets(bench, choice);
    try {
      const measured = await measureCase(bench, targets.all, options, say);
      rows.push(...measured);
      console.log(textRows(measured));
    } finally {
      await targets.stop();
    }
  }
  return rows;
}

async function main(): Promise<void> {
  let options: BenchOptions | undefined;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${HELP}`);
    process.exitCode = 2;
    return;
  }
  if (options === undefined) {
    process.stdout.write(HELP);
    return;
  }
  if (options.list) {
    for (const { name } of CASES) console.log(name);
    return;
  }
  let count = 0;
  if (options.micro) {
    fetchTools(['redis-server']);
    const figures = await printMicro(options.filters, options.quick, say);
    count += figures.length;
    if (options.write) writeGrowth(figures);
  }
  if (options.load) {
    const rows = await runLoad(options);
    count += rows.length;
    if (options.write) writeResults(rows, options);
  }
  if (count === 0) {
    say(
      `no case was measured: no name of one holds ${options.filters.join(' or ')}; --list prints those of load`,
    );
    process.exitCode = 2;
  }
}

main().catch(async (error: Error) => {
  await stopAllProcesses();
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
