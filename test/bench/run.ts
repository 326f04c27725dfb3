import { closeAll } from '../support/process/close-later.js';
import { stopAllProcesses } from '../support/process/processes.js';
import { fetchTools, optionalToolPath } from '../support/process/tools.js';
import { type BenchCase, CASES, supportsExternalServer } from './load/cases.js';
import { measureCase, type Row } from './load/measure-case.js';
import { textHeading, textRows } from './load/table.js';
import { startTargets } from './load/targets.js';
import { type BenchOptions, HELP, readOptions, selectCases } from './options.js';
import { printMicro } from './run-micro.js';
import { runWorst } from './worst/run-worst.js';
import { writeResults } from './write-results.js';

/** `npm run bench`: prints tables to stdout, and progress to stderr. See docs/internals/benchmarks.md. */
const printProgress = (line: string) => process.stderr.write(`${line}\n`);

/** Returns the programs that a case needs. */
function requiredTools({ generator, envoy, stores }: BenchCase): readonly string[] {
  return [
    ...(generator === 'h2load' ? ['h2load'] : []),
    ...(envoy ? ['envoy'] : []),
    ...(stores.some((store) => store !== 'memory') ? ['redis-server'] : []),
  ];
}

async function runLoad(options: BenchOptions): Promise<Row[]> {
  const targetOptions = { transports: options.transports, external: options.target, checkouts: [] };
  const rows: Row[] = [];
  const wanted = selectCases(CASES, options.filters).filter(
    (bench) => options.target === undefined || supportsExternalServer(bench),
  );
  if (wanted.length === 0) return rows;
  fetchTools([...new Set(wanted.flatMap(requiredTools))]);
  console.log(
    `CPU time per decision, median of ${options.rounds} rounds of ${options.seconds} s, Node ${process.version}`,
  );
  console.log(textHeading());
  for (const bench of wanted) {
    const missing = requiredTools(bench).find((tool) => optionalToolPath(tool) === undefined);
    if (missing !== undefined) {
      console.log(`${bench.name}\n  skipped: ${missing} is not available`);
      continue;
    }
    try {
      const targets = await startTargets(bench, targetOptions);
      const measured = await measureCase(bench, targets, options, printProgress);
      rows.push(...measured);
      console.log(textRows(measured));
    } finally {
      await closeAll();
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
    count += (await printMicro(options.filters, options.quick, printProgress)).length;
  }
  if (options.load) {
    const rows = await runLoad(options);
    count += rows.length;
    if (options.write) writeResults(rows, options);
  }
  if (options.worst) count += await runWorst(options, printProgress);
  if (count === 0) {
    printProgress(
      `No case has ${options.filters.map((filter) => `"${filter}"`).join(' or ')} in its name. ` +
        '--list prints the names of the load cases.',
    );
    process.exitCode = 2;
  }
}

main().catch(async (error: Error) => {
  await stopAllProcesses();
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
