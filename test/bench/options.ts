import type { GivenTarget } from './load/targets.js';

export const HELP = `Usage: npm run bench [-- [micro|load] [options] [part of a case's name …]]

Without micro or load both run. The case of the given name runs, else all cases whose names hold the given part.
  --list              print the cases of load
  --quick             seconds instead of minutes, figures to be taken as a sign of life only
  --rounds N          rounds of each load case, the figures are their medians (5)
  --seconds N         length of a round (1.5)
  --many N            how many "many tenants" are (1000000, at most 9000000)
  --transports A,B    run weir once with each GRPC_TRANSPORT (default: weir's own choice)
  --target HOST:PORT  measure this server instead of weir, in the load cases that need no special set-up of it; see docs/internals/benchmarks.md
  --pid N             process of the target, for its CPU and memory
  --redis-pid N,…     processes of the Redis that the target uses
  --write             keep the figures: test/bench/results/ and the part of docs/reference/cost.md that shows them; of micro, the picture of match-growth
`;

export interface BenchOptions {
  readonly micro: boolean;
  readonly load: boolean;
  readonly list: boolean;
  readonly quick: boolean;
  readonly write: boolean;
  readonly rounds: number;
  readonly seconds: number;
  readonly many: number;
  readonly transports: readonly (string | undefined)[];
  readonly target: GivenTarget | undefined;
  readonly filters: readonly string[];
}

const MAX_TENANTS = 9_000_000;
const FLAGS = ['--list', '--quick', '--write', '--help'];
const VALUES = ['--rounds', '--seconds', '--many', '--transports', '--target', '--pid', '--redis-pid'];

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0) || value === Number.POSITIVE_INFINITY)
    throw new Error(`${name} wants a positive number, not "${text}"`);
  return value;
}

function givenTarget(values: ReadonlyMap<string, string>): GivenTarget | undefined {
  const address = values.get('--target');
  const pid = values.get('--pid');
  if (address === undefined) {
    if (pid !== undefined || values.has('--redis-pid'))
      throw new Error('--pid and --redis-pid belong to --target');
    return undefined;
  }
  const colon = address.lastIndexOf(':');
  if (colon < 1) throw new Error(`--target wants host:port, not "${address}"`);
  if (pid === undefined) throw new Error('--target wants --pid too: CPU time is read from that process');
  const redisPids = values.get('--redis-pid')?.split(',') ?? [];
  return {
    host: address.slice(0, colon).replace(/^\[(.*)\]$/, '$1'),
    port: positive('--target', address.slice(colon + 1)),
    pid: positive('--pid', pid),
    redisPids: redisPids.map((one) => positive('--redis-pid', one)),
  };
}

/** Reads the command line. Returns undefined for --help; throws a sentence where it makes no sense. */
export function readOptions(argv: readonly string[]): BenchOptions | undefined {
  const flags = new Set<string>();
  const values = new Map<string, string>();
  const words: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] as string;
    if (FLAGS.includes(word)) flags.add(word);
    else if (VALUES.includes(word)) {
      const value = argv[++index];
      if (value === undefined) throw new Error(`${word} wants a value`);
      values.set(word, value);
    } else if (word.startsWith('-')) throw new Error(`no option ${word}`);
    else words.push(word);
  }
  if (flags.has('--help')) return undefined;
  const [kind] = words;
  const both = kind !== 'micro' && kind !== 'load';
  const quick = flags.has('--quick');
  const number = (name: string, usual: number) => {
    const text = values.get(name);
    return text === undefined ? usual : positive(name, text);
  };
  const target = givenTarget(values);
  return {
    micro: (both || kind === 'micro') && target === undefined,
    load: both || kind === 'load',
    list: flags.has('--list'),
    quick,
    write: flags.has('--write'),
    rounds: Math.ceil(number('--rounds', quick ? 1 : 5)),
    seconds: number('--seconds', quick ? 0.1 : 1.5),
    many: Math.min(MAX_TENANTS, Math.ceil(number('--many', quick ? 5000 : 1_000_000))),
    transports: values.get('--transports')?.split(',') ?? [undefined],
    target,
    filters: both ? words : words.slice(1),
  };
}

/** Whether the command line asks for a case, by a part of its name. */
export function isWanted(name: string, filters: readonly string[]): boolean {
  return filters.length === 0 || filters.some((part) => name.includes(part));
}

/** The cases that the command line asks for: a whole name means that case alone, other words are parts of names. */
export function wantedOf<Case extends { readonly name: string }>(
  cases: readonly Case[],
  filters: readonly string[],
): readonly Case[] {
  if (filters.length === 0) return cases;
  const names = new Set(cases.map(({ name }) => name));
  return cases.filter(({ name }) =>
    filters.some((filter) => (names.has(filter) ? name === filter : name.includes(filter))),
  );
}
