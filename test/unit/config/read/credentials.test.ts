import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { dumpTree } from '../../../../src/config/show/dump-tree.js';
import { explain } from '../../../../src/config/show/explain.js';
import { renderExplanation } from '../../../../src/config/show/explain-text.js';
import { entriesKey } from '../../../../src/policy/names/bucket-key.js';
import { isCredential } from '../../../../src/policy/redact.js';
import { entries, parse, policyOf, setOf } from '../../../support/policy/policies.js';

const SECRET = 'SECRETKEY123';
const hex = (text: string): string => createHash('sha256').update(text).digest('hex');
const REDACTED = `[redacted sha256:${hex(SECRET).slice(0, 8)}]`;
const LIMIT = 'rate_limit: { unit: second, requests_per_unit: 1 }';

test('credentials are recognised by their key, in any case', () => {
  for (const key of ['api_key', 'apikey', 'API-Key', 'X-Api-Key', 'Authorization']) {
    expect(isCredential(key)).toBe(true);
  }
  expect(isCredential('tenant')).toBe(false);
});

describe('credentials in a policy without a key table', () => {
  const policy = policyOf(`
domain: d
derive:
  - { entry: who, from: [authorization], rules: [{ authorization: ${SECRET}, value: me }] }
descriptors:
  - { key: api_key, ${LIMIT} }
  - { key: api_key, value: ${SECRET}, ${LIMIT} }
  - { key: x-api-key, value: "a*", ${LIMIT} }
  - { key: apikey, value: "*", share_threshold: true, ${LIMIT} }
`);
  const policySet = setOf(policy);

  test('names of buckets contain digests of the values', () => {
    const keyOf = (text: string): string => policy.match(entries(text)).keys[0]!;
    expect(keyOf(`api_key=${SECRET}`)).toBe(`1:d7:api_key#${hex(SECRET)}%1`);
    expect(keyOf('api_key=other')).toBe(`1:d7:api_key#${hex('other')}%1`);
    expect(keyOf('x-api-key=abc')).toBe(`1:d9:x-api-key#${hex('abc')}%1`);
    expect(keyOf('apikey=abc')).toBe('1:d6:apikey1**%1');
    const { key, hashTagLength } = entriesKey('d', entries(`API_KEY=${SECRET}`, 'x=1'));
    expect(key).toBe(`1:d7:API_KEY#${hex(SECRET)}1:x1:1`);
    expect(key.slice(hashTagLength)).toBe('1:x1:1');
  });

  test('paths, dump and explanations contain no literal value', () => {
    expect(policy.rules.map((rule) => rule.path)).toEqual([
      'api_key',
      `api_key=${REDACTED}`,
      'x-api-key=a*',
      'apikey=*',
    ]);
    expect(dumpTree(policySet, 0)).toContain(`    api_key=${REDACTED}: window`);
    expect(dumpTree(policySet, 0)).toContain(`    authorization=${REDACTED} -> me`);
    expect(dumpTree(policySet, 0)).not.toContain(SECRET);
    for (const given of [`api_key=${SECRET}`, 'api_key=other', `authorization=${SECRET}`]) {
      const explanation = explain(policySet, 'd', entries(given));
      expect(renderExplanation(explanation, 0)).not.toContain(SECRET);
      expect(JSON.stringify(explanation)).not.toContain(SECRET);
    }
  });

  test('errors contain no literal value', () => {
    const twice = `{ key: api_key, value: ${SECRET} }`;
    const { problems } = parse(`domain: d
derive: [{ entry: e, from: [api_key], rules: [{ api_key: "/{${SECRET}", value: v }] }]
descriptors: [${twice}, ${twice}]
`);
    expect(problems.errors).toHaveLength(2);
    expect(problems.errors[1]?.message).toContain(`"api_key=${REDACTED}" is defined twice`);
    expect(JSON.stringify(problems.errors)).not.toContain(SECRET);
  });
});
