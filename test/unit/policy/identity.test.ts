import { expect, test } from '@jest/globals';
import { identityOf, identityText, shownIdentity } from '../../../src/policy/identity.js';
import { sha256Hex } from '../../../src/policy/names/sha256.js';
import { redactEntries } from '../../../src/policy/redact.js';
import { policyOf } from '../../support/policy/policies.js';

const POLICY = policyOf(`
domain: d
derive:
  - { entry: tenant, from: [api_key], sha256: { ${sha256Hex('key of acme')}: acme } }
descriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: 1 } }]
`);

test('an API key identifies its tenant once, in any order of the entries', () => {
  const path = { key: 'path', value: '/a' };
  const key = { key: 'api_key', value: 'key of acme' };
  const expected = [
    { key: 'path', value: '/a', secret: false },
    { key: 'tenant', value: 'acme', secret: false },
  ];
  expect(identityOf(POLICY, [key, path])).toEqual(expected);
  expect(identityOf(POLICY, [path, key, path])).toEqual(expected);
  expect(identityOf(POLICY, [path, { key: 'tenant', value: 'acme' }])).toEqual(expected);
});

test('contains no secret, and shows secrets like all other views', () => {
  const given = [{ key: 'authorization', value: 'Bearer 123' }];
  const identity = identityOf(POLICY, given);
  expect(JSON.stringify(identity)).not.toContain('123"');
  expect(identity).toEqual([{ key: 'authorization', value: sha256Hex('Bearer 123'), secret: true }]);
  if (typeof identity === 'string') throw new Error(identity);
  expect(shownIdentity(identity)).toEqual(redactEntries(given, POLICY.secretKeys));
});

test('distinguishes identities, including a secret and a value that equals its digest', () => {
  const digest = sha256Hex('x');
  const texts = [
    [{ key: 'a', value: digest, secret: true }],
    [{ key: 'a', value: digest, secret: false }],
    [{ key: 'a', value: digest.slice(1), secret: false }],
  ].map(identityText);
  expect(new Set(texts).size).toBe(3);
});

test.each([
  [[], 'no entries given'],
  [[{ key: 'a', value: 'v'.repeat(1025) }], 'the value of a is longer than 1024 bytes'],
  [[{ key: 'k'.repeat(1025), value: '' }], 'a key is longer than 1024 bytes'],
  [Array.from({ length: 17 }, (_, n) => ({ key: `k${n}`, value: '' })), 'too many different entries: 17'],
])('refuses an invalid identity with a sentence (%#)', (given, sentence) => {
  expect(identityOf(POLICY, given)).toEqual(expect.stringContaining(sentence));
});
