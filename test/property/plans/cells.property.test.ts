import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { describeRate } from '../../../src/policy/describe.js';
import { runs } from '../../support/assert/runs.js';
import { entries, parse } from '../../support/policy/policies.js';

/*
 * Odd cells have the same value in each format of a table and as a literal in a limit, or are refused everywhere. The
 * differences that the manual describes are in RULES.
 */

/** Limits with a value, a valid value, and whether the value is a number. */
const LIMITS = [
  ['unit: minute, requests_per_unit: VALUE', '1', true],
  ['unit: minute, algorithm: token_bucket, requests_per_unit: VALUE', '1', true],
  ['unit: minute, algorithm: token_bucket, requests_per_unit: 2, burst: VALUE', '1', true],
  ['token_bucket: { max_tokens: 3, tokens_per_fill: VALUE, fill_interval: 1m }', '1', true],
  ['token_bucket: { max_tokens: 3, fill_interval: VALUE }', '1m', false],
  ['unit: VALUE, requests_per_unit: 3', 'minute', false],
  ['concurrency: { max: VALUE }', '1', true],
] as const;

/** A value as a program or a person writes it. */
interface Cell {
  readonly text: string;
  readonly isQuoted: boolean;
}

const NULLS = ['', '~', 'null', 'Null', 'NULL'];
const WORDS = [
  'yes',
  'on',
  '.nan',
  '.inf',
  '-.inf',
  'NaN',
  'Infinity',
  'Minute',
  'DAY',
  'days',
  'unlimited',
  '-',
];
const NUMBERS = [
  ...[
    '1e3',
    '1.0',
    '1000.0',
    '5.',
    '.5',
    '0.5',
    '1000.5',
    '+7',
    '-0',
    '-0.0',
    '0',
    '00',
    '010',
    '-5',
    '1e-400',
    '1e400',
  ],
  ...[
    '0x1F',
    '0b11',
    '0o17',
    '1_000',
    '1:30',
    '1,5',
    '1,000',
    '1.000,0',
    '4294967295',
    '4294967295.0',
    '4294967296',
  ],
  ...[
    '9007199254740993',
    '18446744073709551616',
    '٣',
    '５',
    '½',
    '1 000',
    '1\u00a0000',
    '$5',
    '5%',
    '5;',
    "5'",
  ],
];
const DURATIONS = ['1s', '1.5h', '3us', '1h30m', '1ns', '1d', '60', '2562047h', '1 s', '1S', '-1s'];
const QUOTES = ['"', '""', '"5"', '5"', "'5'", '\u201c5\u201d', 'a\nb', '5\n', '\t5', '\\5', '#5', '5 #'];

const text = fc.oneof(
  fc.constantFrom(...NULLS, ...WORDS, ...NUMBERS, ...DURATIONS, ...QUOTES),
  fc.nat({ max: 3000 }).map(String),
  fc.stringMatching(/^[-+]?[0-9]{1,4}\.[0-9]{0,2}0{0,3}$/),
  fc.stringMatching(/^[0-9][0-9a-z._]{0,6}$/),
  fc.stringMatching(/^[1-9][0-9]{0,2}(?:ms|s|m|h)$/),
  fc.stringMatching(/^[~+.0-9a-zA-Z]{0,6}$/),
);
const cell: fc.Arbitrary<Cell> = fc
  .record({ text, space: fc.constantFrom('', '', '', ' ', '  '), isQuoted: fc.boolean() })
  .map(({ text: written, space, isQuoted }) => ({ text: `${space}${written}${space}`, isQuoted }));

/** Returns how JSON has a cell; undefined if it cannot have it. */
function jsonOf({ text: written, isQuoted }: Cell): string | undefined {
  if (isQuoted) return JSON.stringify(written);
  if (NULLS.includes(written)) return 'null';
  if (/^(?:true|false|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[-+]?\d+)?)$/i.test(written)) return written;
  return /^\s|\s$/.test(written) ? undefined : JSON.stringify(written);
}

function yamlOf({ text: written, isQuoted }: Cell): string | undefined {
  if (isQuoted) return JSON.stringify(written);
  return /^(?:[\p{L}\p{N}_.+~$½-][\p{L}\p{N}_.+~:;%-]*)?$/u.test(written) && !/^-$|:$/.test(written)
    ? written
    : undefined;
}

function csvOf({ text: written, isQuoted }: Cell): string | undefined {
  if (isQuoted) return `"${written.replaceAll('"', '""')}"`;
  return /[",\n]/.test(written) ? undefined : written;
}

type Format = 'csv' | 'jsonl' | 'yaml' | 'redis' | 'literal';

/** How each format has a cell, and a table of many. Each row names its plan, and its mark shows that it is read. */
const TABLES = {
  csv: {
    file: 'rows.csv',
    cellOf: csvOf,
    head: 'tenant,plan,mark,v\n',
    rowOf: (name, v) => `${name},gold,3s,${v}\n`,
  },
  jsonl: {
    file: 'rows.jsonl',
    cellOf: jsonOf,
    head: '',
    rowOf: (name, v) => `{"tenant":"${name}","plan":"gold","mark":"3s","v":${v}}\n`,
  },
  yaml: {
    file: 'rows.yaml',
    cellOf: yamlOf,
    head: '',
    rowOf: (name, v) => `${name}:\n  plan: gold\n  mark: 3s\n  v: ${v}\n`,
  },
  redis: {
    file: 'redis://h:1/rows',
    cellOf: jsonOf,
    head: '',
    rowOf: (name, v) => `${JSON.stringify([name, `{"plan":"gold","mark":"3s","v":${v}}`])}\n`,
  },
} as const satisfies Record<Exclude<Format, 'literal'>, Table>;

interface Table {
  readonly file: string;
  readonly cellOf: (cell: Cell) => string | undefined;
  readonly head: string;
  readonly rowOf: (name: string, cell: string) => string;
}

const REFUSED = 'refused';
/** Whatever the format makes of it. */
const ANY = 'any';

const NOT_DECIMAL = /^[-+]?0[0-9a-z_]|_|^[-+]?\d{1,3}\.\d{3}$/i;
const isSpaced = ({ text: written }: Cell): boolean => written !== written.trim();
const ALL_BUT_CSV: readonly Format[] = ['jsonl', 'yaml', 'redis', 'literal'];

/** The only differences between formats. The first rule that applies to a cell decides. */
const RULES: readonly {
  readonly why: string;
  readonly formats: readonly Format[];
  readonly applies: (cell: Cell, isNumber: boolean) => boolean;
  readonly outcome: string;
}[] = [
  {
    why: 'spaces around a cell mean nothing in CSV, and are part of a text elsewhere',
    formats: ALL_BUT_CSV,
    applies: isSpaced,
    outcome: REFUSED,
  },
  {
    why: 'a limit without the key is another limit',
    formats: ['literal'],
    applies: ({ text: written, isQuoted }) => !isQuoted && NULLS.includes(written),
    outcome: ANY,
  },
  {
    why: 'an empty cell has no value, also in quotes, and an empty string is a text',
    formats: ALL_BUT_CSV,
    applies: ({ text: written, isQuoted }) => isQuoted && written === '',
    outcome: REFUSED,
  },
  {
    why: 'programs put all cells into quotes, and a person who does so in a policy means a text',
    formats: ['literal'],
    applies: ({ isQuoted }, isNumber) => isQuoted && isNumber,
    outcome: REFUSED,
  },
  {
    why: 'a number in JSON has one meaning',
    formats: ['jsonl', 'redis'],
    applies: ({ text: written, isQuoted }) =>
      !isQuoted && /^-?\d\.\d{3}$|^-?[1-9]\d{1,2}\.\d{3}$/.test(written),
    outcome: ANY,
  },
  {
    why: 'policies read numbers as envoyproxy/ratelimit does',
    formats: ['literal'],
    applies: ({ text: written }, isNumber) => isNumber && NOT_DECIMAL.test(written),
    outcome: ANY,
  },
];

/** Returns a policy with the value in a limit. Another limit shows whether the row of a customer is read. */
function policyWith(file: string, limit: string, value: string, standard: string): string {
  const other = 'name: other, token_bucket: { max_tokens: 1, fill_interval: { plan: mark } }';
  const plans = `free: { mark: 1s, v: ${standard} }, gold: { mark: 2s, v: ${standard} }`;
  return (
    `domain: d\nplans: { by: tenant, from: "${file}", default: free, define: { ${plans} } }\n` +
    `descriptors: [{ key: tenant, rate_limits: [{ ${limit.replace('VALUE', value)} }, { ${other} }] }]\n`
  );
}

/** Returns the limit of each customer. */
function outcomesOf(
  table: Table,
  limit: string,
  standard: string,
  cells: readonly Cell[],
): readonly string[] {
  const { file, cellOf, head, rowOf } = table;
  const rows = cells.map((one, i) => {
    const written = cellOf(one);
    return written === undefined ? '' : rowOf(`c${i}`, written);
  });
  const { policy, problems } = parse(policyWith(file, limit, '{ plan: v }', standard), {
    [file]: head + rows.join(''),
  });
  expect(problems.errors).toEqual([]);
  return cells.map((one, i) => {
    if (cellOf(one) === undefined) return ANY;
    const rules = policy?.match(entries(`tenant=c${i}`)).rules ?? [];
    const [rate, mark] = rules.map((rule) => describeRate(rule.rate));
    return mark === 'token bucket: 1 token, 1 every 3s' ? String(rate) : REFUSED;
  });
}

function literalOutcome(limit: string, one: Cell): string {
  const written = yamlOf(one);
  if (written === undefined) return ANY;
  const text = `domain: d\ndescriptors: [{ key: tenant, rate_limits: [{ ${limit.replace('VALUE', written)} }] }]\n`;
  const { policy } = parse(text);
  return policy === undefined ? REFUSED : describeRate(policy.match(entries('tenant=a')).rules[0]?.rate);
}

const RUNS = Math.ceil(10_000 / LIMITS.length);

test.each(LIMITS)('cells of %s mean the same in all formats, or are refused', (limit, standard, isNumber) => {
  const { seed } = runs(RUNS);
  const cells = fc.sample(cell, { numRuns: RUNS, ...(seed !== undefined && { seed }) });
  const outcomes: Record<Format, readonly string[]> = {
    csv: outcomesOf(TABLES.csv, limit, standard, cells),
    jsonl: outcomesOf(TABLES.jsonl, limit, standard, cells),
    yaml: outcomesOf(TABLES.yaml, limit, standard, cells),
    redis: outcomesOf(TABLES.redis, limit, standard, cells),
    literal: cells.map((one) => literalOutcome(limit, one)),
  };
  const found = cells.flatMap((one, i) => {
    const compared = (['csv', ...ALL_BUT_CSV] as const).map((format) => {
      const rule = RULES.find(({ formats, applies }) => formats.includes(format) && applies(one, isNumber));
      const outcome = outcomes[format][i];
      return { cell: one, format, outcome, rule };
    });
    const known = compared.filter(({ outcome }) => outcome !== ANY);
    const broken = known.filter(({ rule, outcome }) => rule?.outcome === REFUSED && outcome !== REFUSED);
    const same = known.filter(({ rule }) => rule === undefined);
    return new Set(same.map(({ outcome }) => outcome)).size > 1 ? [...broken, ...same] : broken;
  });
  expect(found).toEqual([]);
  const accepted = outcomes.csv.filter((outcome) => outcome !== REFUSED && outcome !== ANY);
  expect(accepted.length).toBeGreaterThan(30);
  expect(outcomes.csv.filter((outcome) => outcome === REFUSED).length).toBeGreaterThan(100);
});

test.each(['csv', 'jsonl', 'yaml', 'redis'] as const)('%s refuses numbers that are not decimal', (format) => {
  const [limit, standard] = LIMITS[0];
  const cells = ['010', '0x1F', '1_000', '0b11', '0o17', '1.000'].map((written) => ({
    text: written,
    isQuoted: false,
  }));
  const isNumber = format === 'jsonl' || format === 'redis';
  const refused = outcomesOf(TABLES[format], limit, standard, cells).slice(0, isNumber ? -1 : undefined);
  expect(refused).toEqual(refused.map(() => REFUSED));
});
