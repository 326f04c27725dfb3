import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { explain } from '../../src/config/show/explain.js';
import type { Entry } from '../../src/limiter/entry.js';
import { WINDOW_UNITS } from '../../src/limiter/window-unit.js';
import { entriesKey, overrideKey } from '../../src/policy/names/bucket-key.js';
import { normalisePath } from '../../src/policy/paths/normalise-path.js';
import { expectEqual, expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { parse, policyOf } from '../support/policy/policies.js';

const RUNS = runs(500);

/** Short texts of few characters, so that near misses are common. */
const text = (...units: string[]): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...units), maxLength: 10 });

describe('bucket keys', () => {
  const part = fc.oneof(
    text('a', '1', ':', '*', '#', '!', '/'),
    fc.string({ unit: 'grapheme', maxLength: 200 }),
    fc.constantFrom(
      'minute',
      '',
      'api_key',
      `#${'0'.repeat(64)}`,
      'a'.repeat(128),
      'a'.repeat(129),
      'ü'.repeat(64),
    ),
  );
  const entry: fc.Arbitrary<Entry> = fc.record({ key: part, value: part });
  const override = fc.option(fc.tuple(fc.constantFrom(...WINDOW_UNITS), fc.integer({ min: 0, max: 200 })));
  const bucket = fc.tuple(part, fc.array(entry, { maxLength: 3 }), override);
  type Bucket = typeof bucket extends fc.Arbitrary<infer T> ? T : never;

  const keyOf = ([domain, entries, limit]: Bucket): string => {
    const base = entriesKey(domain, entries);
    return limit === null ? base.key : overrideKey(base, ...limit).key;
  };

  test('are equal only for the same bucket', () => {
    fc.assert(
      fc.property(bucket, bucket, (a, b) => {
        expectSame(keyOf(a) === keyOf(b), JSON.stringify(a) === JSON.stringify(b));
      }),
      runs(2000),
    );
  });

  test('differ if the same characters are split at another position', () => {
    // All ways to split one text into domain, key and value.
    fc.assert(
      fc.property(text('a', '1', ':', '*', '#'), (source) => {
        const keys: string[] = [];
        for (let i = 0; i <= source.length; i++) {
          for (let j = i; j <= source.length; j++) {
            const entries = [{ key: source.slice(i, j), value: source.slice(j) }];
            keys.push(entriesKey(source.slice(0, i), entries).key);
          }
        }
        expectSame(new Set(keys).size, keys.length);
      }),
      RUNS,
    );
  });

  test('have a hash tag that depends only on domain and first entry', () => {
    fc.assert(
      fc.property(part, entry, fc.array(entry, { maxLength: 3 }), (domain, first, rest) => {
        const { key, hashTagLength } = entriesKey(domain, [first, ...rest]);
        expectSame(key.slice(0, hashTagLength), entriesKey(domain, [first]).key);
      }),
      RUNS,
    );
  });
});

test('paths are equal with and without escapes, queries and dot segments', () => {
  const plain = fc.array(fc.stringMatching(/^[a-z][a-z0-9.~_-]{0,5}$/), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(plain, fc.infiniteStream(fc.nat(5)), (segments, choices) => {
      const next = (): number => choices.next().value as number;
      const disguised = segments.map((name) => {
        const spelled = [...name].map((char) => {
          const hex = char.charCodeAt(0).toString(16);
          const choice = next();
          return choice === 0 ? `%${hex}` : choice === 1 ? `%${hex.toUpperCase()}` : char;
        });
        return ['/', '//', '/./', '/x/../', '/%2e/', '/y/%2E./'][next()] + spelled.join('');
      });
      const suffix = ['', '/', '?a=/b', '#/c', '//', '/.'][next()];
      expectSame(normalisePath(disguised.join('') + suffix), `/${segments.join('/')}`);
    }),
    RUNS,
  );
});

describe('policies', () => {
  const policy = policyOf(`
domain: d
derive:
  - { entry: t, from: [k], sha256: {} }
  - { entry: g, from: [m, p], rules: [{ m: a, value: x }, { p: "/a/**", value: y }] }
descriptors:
  - key: t
    rate_limit: { unit: second, requests_per_unit: 1 }
    descriptors:
      - { key: g, value: "a*", rate_limit: { unit: second, requests_per_unit: 1 } }
      - { key: g, value: "*b*", share_threshold: true, rate_limit: { unit: second, requests_per_unit: 1 } }
      - { key: g, value: ab, rate_limit: { unit: second, requests_per_unit: 1 } }
      - { key: g, rate_limit: { unlimited: true } }
`);
  const entry = fc.record({
    key: fc.constantFrom('t', 'k', 'g', 'm', 'p', 'z'),
    value: text('a', 'b', '/', '*'),
  });
  const given = fc.array(entry, { maxLength: 4 });

  test('are explained with the result of match', () => {
    const set = { domains: new Map([['d', policy]]), version: '' };
    fc.assert(
      fc.property(given, (entries) => {
        const match = policy.match(entries);
        const explanation = explain(set, 'd', entries);
        expectEqual(
          explanation.rules.map(({ rule, key }) => [rule, key]),
          match.rules.map((rule, i) => [rule, match.keys[i]]),
        );
        expectSame(explanation.result.includes(' applies.'), match.rules[0] !== undefined);
        // The explained walk ends at the matched rule.
        const labels = explanation.levels.map((level) => level.matched);
        if (match.rules[0] !== undefined) expectSame(labels.join('/'), match.rules[0].path);
      }),
      RUNS,
    );
  });

  test('contain no API key after derive', () => {
    fc.assert(
      fc.property(given, (entries) => {
        const match = policy.match(entries);
        expectSame(
          match.entries.some(({ key }) => key === 'k'),
          false,
        );
      }),
      RUNS,
    );
  });

  test('are created from any text, or are an error, but never throw', () => {
    const line = fc.oneof(
      fc.constantFrom(
        'domain: d',
        'descriptors:',
        '- key: a',
        '  value: *x',
        '  rate_limit: &x { unit: day, requests_per_unit: 1 }',
        '  rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 1s } }',
        '  <<: *x',
        'derive: [{ entry: a, from: [b], rules: [{ b: "/**", value: c }] }]',
        'phase: { active: 2024-01-01T00:00:00Z }',
        '---',
      ),
      fc.string({ unit: fc.constantFrom(...' -:?[]{}&*!|>\'"%@`#,\tab0\n'), maxLength: 20 }),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
        const { policy: parsed, problems, tableFiles } = parse(lines.join('\n'));
        expectEqual(tableFiles, []);
        expectSame(parsed === undefined, problems.errors.length > 0);
        for (const { message } of problems.errors) expect(message).not.toBe('');
      }),
      runs(400),
    );
  });
});
