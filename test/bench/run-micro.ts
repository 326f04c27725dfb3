import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { FIGURE_HEADING, type Figure, formatFigure } from './micro/measure.js';

const FOLDER = 'micro';

/** Names of the micro benchmarks: `decide` is micro/decide.bench.ts. */
export function microBenches(): string[] {
  return readdirSync(join(__dirname, FOLDER))
    .flatMap((file) => /^(.*)\.bench\.js$/.exec(file)?.[1] ?? [])
    .sort();
}

/** Runs one micro benchmark of a checkout (its test/bench, compiled); each of its cases has a process of its own. */
export async function runMicro(
  name: string,
  filters: readonly string[],
  quick: boolean,
  folder = __dirname,
): Promise<Figure[]> {
  const file = join(folder, FOLDER, `${name}.bench.js`);
  const env = { ...process.env, BENCH_JSON: '1', ...(quick && { BENCH_QUICK: '1' }) };
  const { stdout } = await promisify(execFile)(process.execPath, [file, ...filters], { env });
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Figure);
}

/**
 * Runs the micro benchmarks, each by itself, and prints a table, which it returns. Filters choose files or cases by
 * parts of their names.
 */
export async function printMicro(
  filters: readonly string[],
  quick: boolean,
  say: (line: string) => void,
): Promise<readonly Figure[]> {
  const all: Figure[] = [];
  console.log(FIGURE_HEADING);
  for (const name of microBenches()) {
    const whole = filters.length === 0 || filters.some((part) => name.includes(part));
    // A part may name cases of this file instead: its name is printed with their figures, if it has such cases.
    if (whole) say(`micro: ${name}`);
    const figures = await runMicro(name, whole ? [] : filters, quick);
    all.push(...figures);
    if (figures.length > 0)
      console.log([name, ...figures.map((figure) => `  ${formatFigure(figure)}`)].join('\n'));
  }
  return all;
}
