import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

export const HELP = `Usage: npm run mutate [-- options]

Changes the source in one place at a time, runs the tests of the changed room, and reports whether a test fails.

  --seed N        seed of the random sample of mutations (1)
  --count N       number of mutations in the sample, divided among the rooms by their size (150)
  --rooms A,B     rooms of src/ to mutate (limiter,policy,service,storage,codec,h2)
  --only N        run only the mutation with this number
  --list          print the sample without running it
  --minutes N     start no mutation after this time, and report the remaining ones as "not run" (60)
  --workers N     number of mutations to run at the same time (2)
  --out FILE      write the results to this JSON file (mutations.json; none with --only)
  --against FILE  repeat the mutations of these earlier results, and list new survivors
`;

export interface MutationOptions {
  readonly seed: number;
  readonly count: number;
  readonly rooms: readonly string[];
  readonly only: number | undefined;
  readonly list: boolean;
  readonly minutes: number;
  readonly workers: number;
  /** Path of the file for the results; undefined if the results are not written. */
  readonly out: string | undefined;
  /** Path of earlier results to compare with. */
  readonly against: string | undefined;
}

/** Reads the command line. Returns undefined for --help. Throws an error with a message if a value is not valid. */
export function readMutationOptions(args: readonly string[]): MutationOptions | undefined {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...{ seed: text, count: text, rooms: text, only: text, minutes: text, workers: text },
      ...{ out: text, against: text, list: flag, help: flag },
    },
  });
  if (values.help === true) return undefined;
  const whole = (name: string, given: string | undefined, lowest: number) => {
    if (given === undefined) return undefined;
    if (!/^\d{1,9}$/.test(given) || Number(given) < lowest)
      throw new Error(`--${name}: '${given}' is not a whole number of at least ${lowest}`);
    return Number(given);
  };
  const out = values.out ?? (values.only === undefined ? 'mutations.json' : undefined);
  if (out !== undefined && values.against !== undefined && resolve(out) === resolve(values.against))
    throw new Error(`--out: ${out} holds the results of --against; name another file`);
  return {
    seed: whole('seed', values.seed, 0) ?? 1,
    count: whole('count', values.count, 1) ?? 150,
    rooms: (values.rooms ?? 'limiter,policy,service,storage,codec,h2').split(','),
    only: whole('only', values.only, 1),
    list: values.list ?? false,
    minutes: whole('minutes', values.minutes, 1) ?? 60,
    workers: whole('workers', values.workers, 1) ?? 2,
    out,
    against: values.against,
  };
}
