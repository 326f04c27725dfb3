/* Values that are networks, as Envoy's action masked_remote_address sends them. */
import { expect, test } from '@jest/globals';
import { MatchWork } from '../../../../src/policy/match-work.js';
import { canonicalAddress } from '../../../../src/policy/values/cidr.js';
import { CidrTable } from '../../../../src/policy/values/cidr-table.js';

function tableOf(...blocks: string[]): CidrTable<string> {
  const table = new CidrTable<string>();
  for (const block of blocks) table.add([block], block);
  return table;
}

const table = tableOf('10.0.0.0/8', '10.1.0.0/16', '10.1.2.0/24', '2001:db8::/32', '2001:db8:1::/48');

test.each([
  ['10.9.0.0/24', '10.0.0.0/8'],
  ['10.0.0.0/8', '10.0.0.0/8'],
  ['10.0.0.0/15', '10.0.0.0/8'],
  ['10.1.0.0/16', '10.1.0.0/16'],
  ['10.1.0.0/24', '10.1.0.0/16'],
  ['10.1.2.0/23', '10.1.0.0/16'],
  ['10.1.2.0/24', '10.1.2.0/24'],
  ['10.1.2.3/32', '10.1.2.0/24'],
  ['::ffff:10.1.2.3/128', '10.1.2.0/24'],
  ['2001:db8:2::/48', '2001:db8::/32'],
  ['2001:DB8:1:0::/64', '2001:db8:1::/48'],
])('%s is in %s', (network, block) => {
  expect(table.find(network, new MatchWork())).toBe(block);
});

test.each([
  ['larger than the block', '10.0.0.0/7'],
  ['larger than the block', '2001:db8::/31'],
  ['everything', '0.0.0.0/0'],
  ['elsewhere', '11.0.0.0/24'],
  ['of another address family', '::/48'],
  ['with bits after the prefix', '10.1.2.3/24'],
  ['without a length', '10.1.2.0/'],
  ['with a prefix that is too long', '10.1.2.0/33'],
  ['with two lengths', '10.1.2.0/24/24'],
  ['a path', '/10.1.2.0/24'],
  ['long', `10.1.2.0/${'0'.repeat(100_000)}24`],
])('a network %s is in no block', (_, network) => {
  expect(table.find(network, new MatchWork())).toBeUndefined();
});

test('a network has only one spelling', () => {
  expect(canonicalAddress('2001:DB8:0:0::/48')).toBe('2001:db8::/48');
  expect(canonicalAddress('192.0.2.0/24')).toBe('192.0.2.0/24');
  expect(canonicalAddress('192.0.2.1/24')).toBeUndefined();
  // All spellings of one address share a bucket.
  expect(canonicalAddress('192.0.2.7/32')).toBe('192.0.2.7');
  expect(canonicalAddress('::ffff:192.0.2.7/128')).toBe('192.0.2.7');
  expect(canonicalAddress('2001:DB8::1/128')).toBe('2001:db8::1');
  expect(canonicalAddress('2001:db8::/32')).toBe('2001:db8::/32');
});
