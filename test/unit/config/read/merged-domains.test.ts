import { beforeEach, describe, expect, test } from '@jest/globals';
import type { LoadedPolicies } from '../../../../src/config/files/load-policies.js';
import { cases } from '../../../support/assert/cases.js';
import { entries } from '../../../support/policy/policies.js';
import {
  invalidFile,
  PolicyDir,
  statesOf,
  UNPARSEABLE,
  validFile,
} from '../../../support/policy/policy-dir.js';

let policies: PolicyDir;
beforeEach(() => {
  policies = new PolicyDir({ mergeDomains: true });
});

describe('merged domains', () => {
  const file = (rest: string): string => `domain: d\n${rest}`;
  const part = (key: string, value = 'x'): string =>
    `descriptors: [{ key: ${key}, value: ${value}, rate_limit: { unlimited: true } }]\n`;
  const pathsOf = ({ policySet }: LoadedPolicies): string[] =>
    policySet.domains.get('d')?.rules.map(({ path }) => path) ?? [];

  test('contain the nodes of all files, ordered by file name', () => {
    const loaded = policies.load({
      'b.yaml': file(part('b')),
      'a.yaml': file(part('a')),
      'c.yaml': validFile('c', 1),
    });
    expect(loaded.errors).toEqual([]);
    expect(pathsOf(loaded)).toEqual(['a=x', 'b=x']);
    expect(loaded.domains).toEqual([
      { domain: 'c', files: [policies.join('c.yaml')], state: 'ok' },
      { domain: 'd', files: [policies.join('a.yaml'), policies.join('b.yaml')], state: 'ok' },
    ]);
    const { policySet } = loaded;
    expect(policySet.domains.get('d')?.file).toBe(`${policies.join('a.yaml')}, ${policies.join('b.yaml')}`);
    expect(policySet.domains.get('d')?.match(entries('b=x')).rules[0]).toBeDefined();
  });

  test('may have one key with different values in each file', () => {
    expect(
      pathsOf(policies.load({ 'a.yaml': file(part('k', 'x')), 'b.yaml': file(part('k', 'y')) })),
    ).toEqual(['k=x', 'k=y']);
  });

  test('report a node in two files as an error with both, with or without a rate_limit', () => {
    const outer = 'descriptors:\n- key: k\n  value: v\n  descriptors:\n  - key: ';
    const loaded = policies.load({
      'a.yaml': file(`${outer}one\n`),
      'b.yaml': file(`# more\n${outer}two\n`),
    });
    expect(policies.errorsOf(loaded)).toEqual([
      'b.yaml:5:10: descriptors[0]: "k=v" is already defined at this level in a.yaml:4:10, a file of ' +
        'the same domain; keep only one of the two descriptors',
    ]);
    expect(statesOf(loaded)).toEqual(['d: absent']);
  });

  test('are invalid as a whole if one file is invalid', () => {
    policies.load({ 'a.yaml': file(part('a')), 'b.yaml': file(part('b')) });
    for (const text of [UNPARSEABLE, invalidFile('d')]) {
      const loaded = policies.load({ 'a.yaml': file(part('other')), 'b.yaml': text });
      expect(loaded.domains).toEqual([
        { domain: 'd', files: [policies.join('a.yaml'), policies.join('b.yaml')], state: 'kept' },
      ]);
      expect(pathsOf(loaded)).toEqual(['a=x', 'b=x']);
    }
    expect(pathsOf(policies.load({ 'b.yaml': undefined }))).toEqual(['other=x']);
  });

  test('may have their settings in any file, and in several equal ones', () => {
    const loaded = policies.load({
      'a.yaml': file(part('a')),
      'b.yaml': file('phase: monitoring\non_store_failure: deny\nresponse_headers: [x-ratelimit]\n'),
      'c.yaml': file('phase: monitoring\nresponse_headers: [x-ratelimit]\n'),
    });
    expect(loaded.errors).toEqual([]);
    const policy = loaded.policySet.domains.get('d');
    expect(policy?.rules[0]?.onStoreFailure).toBe('deny');
    expect(policy?.rules[0]?.phase).toEqual({ gracePeriodAtMicros: Infinity, activeAtMicros: Infinity });
    expect(policy?.responseHeaders).toMatchObject({ xRateLimit: true, retryAfter: false });
  });

  test.each(cases`
    phase: monitoring
      phase: grace_period
      2:8: phase: "phase" differs from its value in a.yaml:2:8, a file of the same domain; use the same value in
        both files, or set it in only one
    on_store_failure: deny
      on_store_failure: error
      2:19: on_store_failure: "on_store_failure" differs from its value in a.yaml:2:19, a file of the same domain;
        use the same value in both files, or set it in only one
    on_store_failure: { local: 0.5 }
      on_store_failure: { local: 0.25 }
      2:19: on_store_failure: "on_store_failure" differs from its value in a.yaml:2:19, a file of the same domain;
        use the same value in both files, or set it in only one
    response_headers: []
      response_headers: [retry-after]
      2:19: response_headers: "response_headers" differs from its value in a.yaml:2:19, a file of the same domain;
        use the same value in both files, or set it in only one
    derive: []
      derive: []
      2:9: derive: "derive" is already set in a.yaml:2:9, a file of the same domain; move these items to that file
  `)('%s and %s', (a, b, error) => {
    const loaded = policies.load({ 'a.yaml': file(`${a}\n`), 'b.yaml': file(`${b}\n`) });
    expect(policies.errorsOf(loaded)).toEqual([`b.yaml:${error}`]);
    expect(statesOf(loaded)).toEqual(['d: absent']);
  });

  test('use the secrets of a derive table in every file', () => {
    const loaded = policies.load({
      'a.yaml': file('descriptors: [{ key: token, value: raw-token, rate_limit: { unlimited: true } }]\n'),
      'b.yaml': file('derive: [{ entry: tenant, from: [token], sha256: {} }]\n'),
    });
    expect(loaded.errors).toEqual([]);
    expect(loaded.policySet.domains.get('d')?.rules[0]?.statName).not.toContain('raw-token');
  });

  test('can replace a rule of another file by name', () => {
    const loaded = policies.load({
      'a.yaml': file('descriptors: [{ key: a, rate_limit: { unlimited: true, replaces: [{ name: b }] } }]\n'),
      'b.yaml': file('descriptors: [{ key: b, rate_limit: { unlimited: true, name: b } }]\n'),
    });
    expect(loaded.warnings).toEqual([]);
  });
});
