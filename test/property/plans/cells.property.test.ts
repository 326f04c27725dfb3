import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { describeRate } from '../../../src/policy/describe.js';
import { runs } from '../../support/assert/runs.js';
import { entries, parse } from '../../support/policy/policies.js';

/*
 * A cell of a table is read twice: by the reader of the limit, which checks it, and as the number that decisions use.
 */

const LIMITS = [
  ['unit: minute, requests_per_unit: VALUE', '1'],
  ['unit: minute, algorithm: token_bucket, requests_per_unit: VALUE', '1'],
  ['unit: minute, algorithm: token_bucket, requests_per_unit: 2, burst: VALUE', '1'],
  ['token_bucket: { max_tokens: 3, tokens_per_fill: VALUE, fill_interval: 1m }', '1'],
  ['token_bucket: { max_tokens: 3, fill_interval: VALUE }', '1m'],
  ['unit: VALUE, requests_per_unit: 3', 'minute'],
  ['concurrency: { max: VALUE }', '1'],
] as const;

const word = fc.constantFrom(
  ...[
    'NULL',
    'null',
    '~',
    '',
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
  ],
  ...['1e3', '1.0', '5.', '.5', '+7', '-0', '0', '00', '010', '0x1F', '0b11', '0o17', '1_000', '1:30', '1,5'],
  ...[
    '4294967295',
    '4294967296',
    '9007199254740993',
    '18446744073709551616',
    '1s',
    '1.5h',
    '3us',
    '1h30m',
    '1ns',
  ],
);
const text = fc.oneof(
  word,
  fc.stringMatching(/^[0-9][0-9a-z._]{0,6}$/),
  fc.stringMatching(/^[~+.0-9a-zA-Z]{0,6}$/),
);

/** Returns the limit of the customer; undefined if the policy or the row is refused. */
function limitOf(policy: string, rows: string): string | undefined {
  const { policy: read } = parse(policy, { 'rows.jsonl': rows });
  return read?.plans?.refused === 0
    ? describeRate(read.match(entries('tenant=acme')).rules[0]?.rate)
    : undefined;
}

/** Returns a policy with the value in a limit. The other limit always takes a value from the plan. */
function policyWith(limit: string, value: string, plan: string): string {
  const other = 'name: other, token_bucket: { max_tokens: 1, fill_interval: { plan: w } }';
  return (
    `domain: d\nplans: { by: tenant, from: rows.jsonl, default: free, define: { free: { w: 1s${plan} } } }\n` +
    `descriptors: [{ key: tenant, rate_limits: [{ ${limit.replace('VALUE', value)} }, { ${other} }] }]\n`
  );
}

test('a cell is refused, or means the same as in the limit', () => {
  let accepted = 0;
  fc.assert(
    fc.property(fc.constantFrom(...LIMITS), text, ([limit, standard], cell) => {
      const rows = `{"tenant":"acme","v":${JSON.stringify(cell)}}\n{"tenant":"other"}\n`;
      const found = limitOf(policyWith(limit, '{ plan: v }', `, v: ${standard}`), rows);
      if (found === undefined) return;
      accepted++;
      const isNull = ['', '~', 'null', 'Null', 'NULL'].includes(cell);
      const written = policyWith(limit, isNull ? standard : cell, '');
      expect(found).toBe(limitOf(written, '{"tenant":"acme"}\n'));
    }),
    runs(3000),
  );
  expect(accepted).toBeGreaterThan(100);
});
