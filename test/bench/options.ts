import type { ExternalTarget } from './load/targets.js';

export const HELP = `Usage: npm run bench [-- [micro|load|worst] [options] [part of a case's name …]]

Runs micro and load by default. worst measures the most expensive requests within the bounds of a request. A complete name selects one case, and any other text selects all cases that
contain it.
See docs/internals/benchmarks.md.

  --list              print the names of the load cases
  --quick             run for seconds instead of minutes; the results have no meaning
  --rounds N          number of rounds of each load case, whose results are medians (5)
  --seconds N         duration of a round (1.5)
  --many N            number of tenants in "many tenants" (1000000, at most 9000000)
  --transports A,B    run weir with each of these GRPC_TRANSPORT values (default: weir's default)
  --target HOST:PORT  measure this server instead of weir, in the load cases that need no special setup
  --pid N             process ID of the target, to measure its CPU time and memory
  --redis-pid N,…     process IDs of the Redis servers that the target uses
  --write             write the results of load to test/bench/results/ and docs/reference/cost.md
`;

export interface BenchOptions {
  readonly micro: boolean;
  readonly load: boolean;
  readonly worst: boolean;
  readonly list: boolean;
  readonly quick: boolean;
  readonly write: boolean;
  readonly rounds: number;
  readonly seconds: number;
  readonly many: number;
  readonly transports: readonly (string | undefined)[];
  readonly target: ExternalTarget | undefined;
  readonly filters: readonly string[];
}

const MAX_TENANTS = 9_000_000;
const FLAGS = ['--list', '--quick', '--write', '--help'];
const VALUES = ['--rounds', '--seconds', '--many', '--transports', '--target', '--pid', '--redis-pid'];

function parsePositive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0) || value === Number.POSITIVE_INFINITY)
    throw new Error(`${name}: "${text}" is not a positive number`);
  return value;
}

function readExternalTarget(values: ReadonlyMap<string, string>): ExternalTarget | undefined {
  const address = values.get('--target');
  const pid = values.get('--pid');
  if (address === undefined) {
    if (pid !== undefined || values.has('--redis-pid'))
      throw new Error('--pid and --redis-pid require --target');
    return undefined;
  }
  const colon = address.lastIndexOf(':');
  if (colon < 1) throw new Error(`--target: "${address}" is not HOST:PORT`);
  if (pid === undefined) throw new Error('--target requires --pid, to measure the CPU time of the process');
  const redisPids = values.get('--redis-pid')?.split(',') ?? [];
  return {
    host: address.slice(0, colon).replace(/^\[(.*)\]$/, '$1'),
    port: parsePositive('--target', address.slice(colon + 1)),
    pid: parsePositive('--pid', pid),
    redisPids: redisPids.map((one) => parsePositive('--redis-pid', one)),
  };
}

/** Reads the command line. Returns undefined for --help. Throws an error with a message if an option is not valid. */
export function readOptions(argv: readonly string[]): BenchOptions | undefined {
  const flags = new Set<string>();
  const values = new Map<string, string>();
  const words: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] as string;
    if (FLAGS.includes(word)) flags.add(word);
    else if (VALUES.includes(word)) {
      const value = argv[++index];
      if (value === undefined) throw new Error(`${word} requires a value`);
      values.set(word, value);
    } else if (word.startsWith('-')) throw new Error(`${word} is not an option`);
    else words.push(word);
  }
  if (flags.has('--help')) return undefined;
  const [kind] = words;
  const isKind = kind === 'micro' || kind === 'load' || kind === 'worst';
  const quick = flags.has('--quick');
  const number = (name: string, usual: number) => {
    const text = values.get(name);
    return text === undefined ? usual : parsePositive(name, text);
  };
  const target = readExternalTarget(values);
  return {
    micro: (!isKind || kind === 'micro') && target === undefined,
    load: !isKind || kind === 'load',
    worst: kind === 'worst',
    list: flags.has('--list'),
    quick,
    write: flags.has('--write'),
    rounds: Math.ceil(number('--rounds', quick ? 1 : 5)),
    seconds: number('--seconds', quick ? 0.1 : 1.5),
    many: Math.min(MAX_TENANTS, Math.ceil(number('--many', quick ? 5000 : 1_000_000))),
    transports: values.get('--transports')?.split(',') ?? [undefined],
    target,
    filters: isKind ? words.slice(1) : words,
  };
}

/** Returns whether a name contains one of the filters. An empty list of filters matches every name. */
export function matchesFilter(name: string, filters: readonly string[]): boolean {
  return filters.length === 0 || filters.some((part) => name.includes(part));
}

/** Returns the selected cases. A filter that is a complete name selects only this case. */
export function selectCases<Case extends { readonly name: string }>(
  cases: readonly Case[],
  filters: readonly string[],
): readonly Case[] {
  if (filters.length === 0) return cases;
  const names = new Set(cases.map(({ name }) => name));
  return cases.filter(({ name }) =>
    filters.some((filter) => (names.has(filter) ? name === filter : name.includes(filter))),
  );
}
