/*
 * Reading large tables of plans. To run it: `node build/test/bench/micro/plans.bench.js [part of a name …]`.
 */
import { loadPolicies } from '../../../src/config/files/load-policies.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { type CustomCase, median, QUICK, runCases } from './measure.js';

const ROWS = QUICK ? 10_000 : 1_000_000;
const ROUNDS = QUICK ? 1 : 3;
/** Number of different numbers of customers, in tables with numbers of their own. */
const NUMBERS = 1000;

/** A table, whose file has a name that ends in `ending`, or is a hash in Redis. */
interface Table {
  readonly from: string;
  readonly head?: string;
  readonly row: (name: string, plan: string, calls: number) => string;
  readonly separator?: string;
  readonly foot?: string;
}

function readingOf(name: string, { from, head = '', row, separator = '', foot = '' }: Table): CustomCase {
  return {
    measure: () => {
      const rows = Array.from({ length: ROWS }, (_, n) =>
        row(`v${n}`, n % 3 === 0 ? 'free' : 'gold', (n % NUMBERS) + 1),
      );
      const text = head + rows.join(separator) + foot;
      const dir = new TempDir();
      const policy = dir.write(
        'policy.yaml',
        `domain: d\nplans: { by: v, from: "${from}", define: { free: { calls: 1 }, gold: { calls: 9 } } }\n` +
          'descriptors: [{ key: v, rate_limit: { unit: day, requests_per_unit: { plan: calls, default: 1 } } }]\n',
      );
      if (!from.includes(':')) dir.write(from, text);
      const options = { rows: new Map([[from, [Buffer.from(text)]]]) };
      const millis: number[] = [];
      let bytes = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const before = process.cpuUsage();
        const table = loadPolicies([policy], options).policySet.domains.get('d')?.plans;
        const { user, system } = process.cpuUsage(before);
        if (table?.rowCount !== ROWS) throw new Error('the table lacks rows');
        millis.push((user + system) / 1000);
        bytes = table.slots.byteLength + table.keys.byteLength + table.values.byteLength;
      }
      dir.remove();
      return [
        {
          name: `${ROWS.toLocaleString('en')} rows of ${name}`,
          value: median(millis),
          min: Math.min(...millis),
          unit: 'ms',
        },
        { name: 'memory of a row', value: bytes / ROWS, unit: 'bytes' },
      ];
    },
  };
}

const object = (name: string, plan: string, calls: number): string =>
  `{"v":"${name}","plan":"${plan}","calls":${calls}}`;

const TABLES: Readonly<Record<string, Table>> = {
  'CSV with plans': {
    from: 'rows.csv',
    head: 'v,plan\n',
    row: (...row) => `${row.slice(0, 2).join()}\n`,
  },
  'CSV with numbers': {
    from: 'rows.csv',
    head: 'v,plan,calls\n',
    row: (...row) => `${row.join()}\n`,
  },
  'CSV with semicolons and quotes': {
    from: 'rows.csv',
    head: '"v";"plan";"calls"\n',
    row: (...row) => `${row.map((cell) => `"${cell}"`).join(';')}\n`,
  },
  'JSON lines with numbers': { from: 'rows.jsonl', row: object, separator: '\n' },
  'JSON list with numbers': {
    from: 'rows.json',
    head: '[',
    row: object,
    separator: ',\n',
    foot: ']\n',
  },
  'Redis with plans': {
    from: 'redis://h:1/rows',
    row: (name, plan) => JSON.stringify([name, plan]),
    separator: '\n',
  },
};

runCases(
  __filename,
  Object.fromEntries(Object.entries(TABLES).map(([name, table]) => [name, readingOf(name, table)])),
);
