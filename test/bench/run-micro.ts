import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { formatMeasurement, HEADING, type Measurement } from './micro/measure.js';

const FOLDER = 'micro';

/** Returns the names of the micro benchmarks, such as `decide` for micro/decide.bench.ts. */
export function microBenches(): string[] {
  return readdirSync(join(__dirname, FOLDER))
    .flatMap((file) => /^(.*)\.bench\.js$/.exec(file)?.[1] ?? [])
    .sort();
}

/** Runs a micro benchmark, with a separate process for each case. `folder` is the compiled test/bench of a checkout. */
export async function runMicro(
  name: string,
  filters: readonly string[],
  quick: boolean,
  folder = __dirname,
): Promise<Measurement[]> {
  const file = join(folder, FOLDER, `${name}.bench.js`);
  const env = { ...process.env, BENCH_JSON: '1', ...(quick && { BENCH_QUICK: '1' }) };
  const { stdout } = await promisify(execFile)(process.execPath, [file, ...filters], { env });
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Measurement);
}

/**
 * Runs the micro benchmarks in sequence, prints a table, and returns its rows. Filters select files or cases by parts
 * of their names.
 */
export async function printMicro(
  filters: readonly string[],
  quick: boolean,
  printProgress: (line: string) => void,
): Promise<readonly Measurement[]> {
  const all: Measurement[] = [];
  console.log(HEADING);
  for (const name of microBenches()) {
    const allCases = filters.length === 0 || filters.some((part) => name.includes(part));
    // A filter may select cases of this file instead. The file's name is printed only if the file has such cases.
    if (allCases) printProgress(`micro: ${name}`);
    const measurements = await runMicro(name, allCases ? [] : filters, quick);
    all.push(...measurements);
    if (measurements.length > 0)
      console.log(
        [name, ...measurements.map((measurement) => `  ${formatMeasurement(measurement)}`)].join('\n'),
      );
  }
  return all;
}
