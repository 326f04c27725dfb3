import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { cases } from '../../../support/assert/cases.js';
import { parse, policyOf } from '../../../support/policy/policies.js';

const limit = (fields: string): string =>
  `domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1, ${fields} } }]\n`;
const onOver = (fields: string): string => limit(`on_over: { ${fields} }`);

/** Returns the errors without their place in the file. */
const errorsOf = (text: string): string[] =>
  parse(text).problems.errors.map((problem) =>
    formatProblem(problem).replace(/^policy\.yaml:\d+:\d+: descriptors\[0\]\.(?:rate_limit\.on_over\.)?/, ''),
  );

describe('on_over', () => {
  test('has headers in lower case, from one item or several, and metadata', () => {
    const fields =
      'allow: true, request_headers: [{ X-Over: a, x-b: 2 }, { c: "d e" }], metadata: { m: [1] }';
    expect(policyOf(onOver(fields)).rules[0]?.onOver).toEqual({
      requestHeaders: [
        { key: 'x-over', value: 'a' },
        { key: 'x-b', value: '2' },
        { key: 'c', value: 'd e' },
      ],
      metadata: { m: [1] },
    });
    expect(policyOf(onOver('allow: true')).rules[0]?.onOver).toEqual({ requestHeaders: [] });
    expect(policyOf(limit('name: n')).rules[0]?.onOver).toBeUndefined();
  });

  test.each([
    ...cases`
      allow: false => allow: "allow" is false, but a limit that denies has no request to mark
      allow: true, headers: [] => headers: unknown key "headers"
      allow: true, request_headers: { a: b } => request_headers: "request_headers" must be a list of mappings
      allow: true, request_headers: [a]
        request_headers[0]: each item of "request_headers" must be a mapping
      allow: true, request_headers: [{ "a b": c }]
        request_headers[0]["a b"]: "a b" is not a valid header name
      allow: true, request_headers: [{ ":path": c }]
        request_headers[0][":path"]: ":path" is not a valid header
      allow: true, request_headers: [{ Host: c }] => request_headers[0].Host: "host" already has a meaning
      allow: true, request_headers: [{ a: b }, { A: c }] => request_headers[1].A: "a" is set twice
      allow: true, request_headers: [{ a: "b\\\\r\\\\nc: d" }] => request_headers[0].a: the value of "a" must
      allow: true, request_headers: [{ a: "" }] => request_headers[0].a: the value of "a" must have 1 to 256
      allow: true, request_headers: [{ a: ${'x'.repeat(257)} }] => request_headers[0].a: the value of "a" must
      allow: true, request_headers: [${'abcdefghi'.replace(/./g, '{ $&: x },')}]
        request_headers[8].i: a limit can add at most 8 headers
      allow: true, metadata: { a: .nan } => metadata.a: ".nan" cannot be represented in JSON
    `,
    ['', 'allow: "allow" is missing; write allow: true'],
  ])('is refused with { %s }', (fields, message) => {
    const errors = errorsOf(onOver(fields.replaceAll('\\\\', '\\')));
    expect(errors).toEqual([expect.stringContaining(message)]);
  });

  test('cannot be combined with quota_mode or unlimited', () => {
    const soft = 'unit: day, requests_per_unit: 1, on_over: { allow: true }';
    const node = (fields: string): string => `domain: d\ndescriptors: [{ key: k, ${fields} }]\n`;
    expect(errorsOf(node(`quota_mode: true, rate_limit: { ${soft} }`))).toEqual([
      expect.stringContaining('"quota_mode" cannot be combined with "on_over"'),
    ]);
    const { warnings } = parse(node('rate_limit: { unlimited: true, on_over: { allow: true } }')).problems;
    expect(warnings.map(({ message }) => message)).toEqual([
      '"on_over" is ignored, because the rule is unlimited; remove it',
    ]);
  });

  test('is refused if it is empty, because the limit would deny', () => {
    expect(errorsOf(limit('on_over: ~'))).toEqual([
      'rate_limit.on_over: "on_over" is empty; write a value after it, or remove the key',
    ]);
  });

  test('makes denied_response useless', () => {
    const { warnings } = parse(limit('denied_response: problem+json, on_over: { allow: true }')).problems;
    expect(warnings.map(({ message }) => message)).toEqual([
      '"denied_response" is ignored, because a limit with "on_over" never denies; remove it',
    ]);
  });

  test('keeps denied_response for customers whom a plan may block', () => {
    const warningsOf = (define: string, requests: string, list = false, key = 'k'): string[] => {
      const soft = 'denied_response: problem+json, on_over: { allow: true }';
      const rate = `{ unit: day, requests_per_unit: ${requests}, ${soft} }`;
      const limits = list ? `rate_limits: [${rate}]` : `rate_limit: ${rate}`;
      const text = `domain: d\nplans: { by: k, define: ${define} }\ndescriptors:\n  - { key: ${key}, ${limits} }\n`;
      const other =
        '  - { key: k, value: x, rate_limit: { unit: day, requests_per_unit: { plan: n, default: 1 } } }';
      return parse(text + other).problems.warnings.map(({ message }) => message);
    };
    const planned = '{ plan: n, default: 1 }';
    expect(warningsOf('{ evil: { blocked: true } }', planned)).toEqual([]);
    expect(warningsOf('{ evil: { blocked: true } }', planned, true)).toEqual([]);
    expect(warningsOf('{ evil: { blocked: true } }', '1')).toEqual([]);
    expect(warningsOf('{ evil: { blocked: true } }', '1', false, 'other')).toEqual([
      expect.stringContaining('"blocked" has no effect at 1 descriptor with limits'),
      expect.stringContaining('never denies'),
    ]);
    expect(warningsOf('{ one: { n: 1 } }', planned, true)).toEqual([
      expect.stringContaining('no plan has "blocked"'),
    ]);
  });
});
