import { describe, expect, test } from '@jest/globals';
import {
  MAX_CHANGE_CHARACTERS,
  MAX_LISTED_CHANGES,
  summarizeChanges,
} from '../../../../src/config/diff/render-diff.js';
import { PolicyDiffer } from '../../../../src/config/threads/policy-task.js';
import type { PolicySet } from '../../../../src/policy/compiled-policy.js';
import { policyOf, setOf } from '../../../support/policy/policies.js';

const limited = (requests: number, keys: readonly string[]): string =>
  `domain: d\ndescriptors:\n${keys
    .map(
      (key) =>
        `- { key: ${JSON.stringify(key)}, rate_limit: { unit: day, requests_per_unit: ${requests} } }\n`,
    )
    .join('')}`;

describe('what a reload changed', () => {
  test('is reported in the words of weir diff', () => {
    expect(summarizeChanges(setOf(limited(1, ['a']), 'domain: gone\n'), setOf(limited(2, ['a'])), 0)).toEqual(
      {
        summary: '1 loosens, 1 removed',
        lines: [
          { domain: 'd', text: 'a: loosens: 1 per day becomes 2 per day; more hits per window' },
          { domain: 'gone', text: 'removed: the domain, with 0 rules; its requests now have no limit' },
        ],
        more: 0,
      },
    );
    expect(summarizeChanges(setOf('domain: d\n'), setOf('domain: d\n'), 0)).toEqual({
      summary: 'nothing changes',
      lines: [],
      more: 0,
    });
  });

  test('is bounded in lines and characters, and contains no control characters', () => {
    const keys = Array.from({ length: 100 }, (_, i) => `${'k'.repeat(1000)}${i}`);
    const { lines, more } = summarizeChanges(
      setOf(limited(1, ['a\u001b[31m\nb', ...keys])),
      setOf(limited(2, ['a\u001b[31m\nb', ...keys])),
      0,
    );
    expect([lines.length, more]).toEqual([MAX_LISTED_CHANGES, 81]);
    expect(lines[0]?.text).toMatch(/^a\ufffd\[31m\ufffdb: loosens/);
    for (const { text } of lines) expect(text.length).toBeLessThanOrEqual(MAX_CHANGE_CHARACTERS + 1);
  });
});

describe('in a thread', () => {
  const everything = (requests: number): string => `domain: d
derive:
- { entry: tenant, from: [api_key], sha256: { ${'a'.repeat(64)}: acme } }
- { entry: group, from: [path], rules: [{ path: "/a/{b,c}/**", value: x }] }
descriptors:
- { key: ip, value_cidr: [10.0.0.0/8], rate_limit: { unit: day, requests_per_unit: ${requests} } }
- { key: p, value_regex: ["a+"], rate_limit: { unit: day, requests_per_unit: ${requests} } }
- { key: w, value: "a*", rate_limit: { unit: day, requests_per_unit: ${requests} } }
`;

  test('is reported in the same way', async () => {
    const same = policyOf('domain: same\n');
    const sets = [1, 2].map((requests): PolicySet => {
      const { domains, version } = setOf(everything(requests));
      return { domains: new Map([...domains, ['same', same]]), version };
    });
    const [before, after] = sets as [PolicySet, PolicySet];
    const told = await new PolicyDiffer().diff(before, after, 0);
    expect(told).toEqual(summarizeChanges(before, after, 0));
    expect(told.summary).toBe('3 loosen');
  });

  test('is not reported after close', async () => {
    const differ = new PolicyDiffer();
    const diffing = differ.diff(setOf(everything(1)), setOf(everything(2)), 0);
    differ.close();
    await expect(diffing).rejects.toThrow('the thread that compares policies exited');
  });
});
