/**
 * Equal behaviour is not a change, even if it is written differently. Similar spellings with different behaviour are
 * changes.
 */
import { describe, expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { cases } from '../../../support/assert/cases.js';
import { setOf } from '../../../support/policy/policies.js';

/** 2026-01-01. */
const NOW = Date.UTC(2026, 0, 1) * 1000;
const changesOf = (before: string, after: string) => diffPolicies(setOf(before), setOf(after), NOW);
const linesOf = (before: string, after: string): readonly string[] =>
  changesOf(before, after).map(({ path, effect, text }) => `${path}: ${effect}: ${text}`);

const file = (descriptors: string, top = ''): string => `domain: d\n${top}\ndescriptors: [${descriptors}]\n`;
const limited = (limit: string, more = ''): string => file(`{ key: k, ${more} rate_limit: { ${limit} } }`);
const MINUTE = 'unit: minute, requests_per_unit: 10';

describe('another spelling', () => {
  const node = (fields: string): string => limited(MINUTE, fields);
  const top = (fields: string, limit = MINUTE): string =>
    file(`{ key: k, rate_limit: { ${limit} } }`, fields);

  // property/diff-spellings.property.test.ts tests the other spellings.
  test.each(cases`
    days in UTC
      ${limited('unit: day, requests_per_unit: 5')}
      ${limited('unit: day, requests_per_unit: 5, calendar: Etc/UTC')}
    a phase that ended
      ${node('phase: { active: 2027-01-01T00:00:00Z, grace_period: 2024-01-01T00:00:00Z },')}
      ${node('phase: { active: 2027-01-01T00:00:00Z, grace_period: 2025-01-01T00:00:00Z },')}
    a phase in the distant future
      ${top('phase: { active: 2027-01-01T00:00:00Z }')}
      ${top('phase: { active: 2027-01-01T00:00:00Z, grace_period: 2027-01-01T00:00:00Z }')}
    the share of the whole limit
      ${top('on_store_failure: local')}
      ${top('on_store_failure: { local: 1.0 }', `${MINUTE}, on_store_failure: { local: 1 }`)}
    headers without a limit
      ${limited('unlimited: true')}
      ${limited('unlimited: true, response_headers: [ratelimit]')}
    blocks after the first
      ${node('value_cidr: [10.0.0.0/8, 192.0.2.0/24, 2001:db8::/32],')}
      ${node('value_cidr: [10.0.0.0/8, "2001:0DB8::/32", 192.0.2.0/24],')}
  `)('is no change: %s', (_, before, after) => {
    expect(changesOf(before, after)).toEqual([]);
    expect(changesOf(after, before)).toEqual([]);
  });

  test('that starts a list with another item is another node, which is named after the item', () => {
    expect(linesOf(node('value_regex: [a+, b+],'), node('value_regex: [b+, a+],'))).toEqual([
      'k~b+,…: appears: 10 per minute',
      'k~a+,…: vanishes: 10 per minute; other limits may now deny more',
    ]);
  });

  test('of headers is a change if the file has others', () => {
    const own = `${MINUTE}, response_headers: [ratelimit]`;
    expect(
      linesOf(top('response_headers: [retry-after]'), top('response_headers: [retry-after]', own)),
    ).toEqual(['k: changes: response_headers: retry-after becomes ratelimit']);
    expect(
      linesOf(top('response_headers: [ratelimit]'), top('response_headers: [retry-after]', own)),
    ).toEqual([': changes: response_headers: ratelimit becomes retry-after']);
  });
});
