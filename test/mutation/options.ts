import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

export const HELP = `Usage: npm run mutate [-- options]

Changes the source in one place, runs the tests of that room, and says whether a test fails; then the next place.
  --seed N        draws the mutations (1)
  --count N       how many mutations are drawn, by size of the rooms (150)
  --rooms A,B     rooms of src/ (limiter,policy,service,storage,codec,h2)
  --only N        run mutation N of the drawn ones alone
  --list          print the drawn mutations and run none
  --minutes N     start nothing after this time; mutations that are left are "not run" (60)
  --workers N     mutations at a time (2)
  --out FILE      where the results go, as JSON (mutations.json; nowhere with --only)
  --against FILE  take the mutations of these earlier results, and list those that survive only now
`;

export interface MutationOptions {
  readonly seed: number;
  readonly count: number;
  readonly rooms: readonly string[];
  readonly only: number | undefined;
  readonly list: boolean;
  readonly minutes: number;
  readonly workers: number;
  /** Undefined where no results are kept. */
  readonly out: string | undefined;
  readonly against: string | undefined;
}

/** Reads the command line. Returns undefined for --help; throws a sentence where a value is not valid. */
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
