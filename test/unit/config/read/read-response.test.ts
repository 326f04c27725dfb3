import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { cases } from '../../../support/assert/cases.js';
import { parse, policyOf } from '../../../support/policy/policies.js';

const limit = (fields: string): string =>
  `domain: d\ndescriptors:\n- key: k\n  rate_limit: { unit: day, requests_per_unit: 1, ${fields} }\n`;

const errorsOf = (text: string): string[] => parse(text).problems.errors.map(formatProblem);
const ruleOf = (fields: string) => policyOf(limit(fields)).rules[0];

const NONE = { xRateLimit: false, retryAfter: false, rateLimitDraft03: false, rateLimit: false };

describe('response_headers', () => {
  test('of a file', () => {
    const families = (list: string) => policyOf(`domain: d\nresponse_headers: ${list}\n`).responseHeaders;
    expect(families('[]')).toEqual(NONE);
    expect(families('[ratelimit]')).toEqual({ ...NONE, rateLimit: true });
    expect(families('[ratelimit-draft-03, retry-after]')).toEqual({
      ...NONE,
      rateLimitDraft03: true,
      retryAfter: true,
    });
    expect(policyOf('domain: d\n').responseHeaders).toBeUndefined();
  });

  test('of a rule', () => {
    expect(ruleOf('response_headers: [x-ratelimit]')?.responseHeaders).toEqual({ ...NONE, xRateLimit: true });
    expect(ruleOf('name: n')?.responseHeaders).toBeUndefined();
    expect(errorsOf(limit('response_headers: [ratelimit, RateLimit]'))).toEqual([
      'policy.yaml:4:80: descriptors[0].rate_limit.response_headers[1]: "RateLimit" is not valid in ' +
        '"response_headers"; did you mean "ratelimit"?',
    ]);
  });
});

describe('request_headers', () => {
  test('of a file and of a rule', () => {
    const policy = policyOf('domain: d\nrequest_headers: [ratelimit-draft-03, ratelimit]\n');
    expect(policy.requestHeaders).toEqual({ ...NONE, rateLimitDraft03: true, rateLimit: true });
    expect(policy.responseHeaders).toBeUndefined();
    expect(ruleOf('request_headers: [x-ratelimit]')?.requestHeaders).toEqual({ ...NONE, xRateLimit: true });
    expect(ruleOf('response_headers: [x-ratelimit]')?.requestHeaders).toBeUndefined();
  });

  test('has no retry-after for a request that goes upstream', () => {
    expect(errorsOf(limit('request_headers: [x-ratelimt, retry-after, x]'))).toEqual([
      'policy.yaml:4:68: descriptors[0].rate_limit.request_headers[0]: "x-ratelimt" is not valid in ' +
        '"request_headers"; did you mean "x-ratelimit"?',
      'policy.yaml:4:80: descriptors[0].rate_limit.request_headers[1]: "retry-after" is not valid in ' +
        '"request_headers"; write one of x-ratelimit, ratelimit-draft-03, ratelimit',
      'policy.yaml:4:93: descriptors[0].rate_limit.request_headers[2]: "x" is not valid in ' +
        '"request_headers"; write one of x-ratelimit, ratelimit-draft-03, ratelimit',
    ]);
  });
});

describe('denied_response', () => {
  test('a preset, or a body with its media type', () => {
    expect(policyOf('domain: d\ndenied_response: problem+json\n').deniedResponse).toEqual({
      preset: 'problem+json',
      body: '',
      contentType: 'application/problem+json',
    });
    expect(ruleOf('denied_response: { body: "no\\nmore" }')?.deniedResponse).toEqual({
      preset: 'none',
      body: 'no\nmore',
      contentType: '',
    });
    const type = 'text/html; charset=utf-8;x="a\\"b, c"';
    expect(ruleOf(`denied_response: { body: b, content_type: '${type}' }`)?.deniedResponse).toEqual({
      preset: 'none',
      body: 'b',
      contentType: type,
    });
    expect(policyOf('domain: d\n').deniedResponse).toBeUndefined();
  });

  test.each(cases`
    problem
      2:18: denied_response: "denied_response" must not be a single value; write problem+json, or a mapping, as in {
        body: "slow down" }
    [a]
      2:18: denied_response: "denied_response" must not be a list; write problem+json, or a mapping, as in { body:
        "slow down" }
    {}
      2:18: denied_response: "body" is missing; write the text that denied callers receive, or "" for none
    { text: x }
      2:18: denied_response: "body" is missing; write the text that denied callers receive, or "" for none
      2:20: denied_response.text: unknown key "text"; the keys allowed here are body, content_type
    { body: [a] } => 2:26: denied_response.body: "body" must be a string, not a list; write a single string
  `)('%s', (value, ...errors) => {
    expect(errorsOf(`domain: d\ndenied_response: ${value}\n`)).toEqual(
      errors.map((error) => `policy.yaml:${error}`),
    );
  });

  test.each([
    'html',
    'text/',
    'text/html\\r\\nset-cookie: a=b',
    'text/html\\n',
    'text/html;',
    'text/html; charset',
    'text/html; charset="a\\nb"',
    'text/hä',
  ])('refuses the media type %j', (type) => {
    const errors = errorsOf(
      `domain: d\ndenied_response: { body: b, content_type: "${type.replace(/"a/, '\\"a').replace(/b"$/, 'b\\"')}" }\n`,
    );
    expect(errors).toEqual([
      expect.stringMatching(
        new RegExp(
          '^policy\\.yaml:2:43: denied_response\\.content_type: ".*" is not a valid media type; write ' +
            'a media type, such as text/html$',
        ),
      ),
    ]);
  });

  test('refuses a long body', () => {
    const withBody = (body: string) => `domain: d\ndenied_response: { body: ${body} }\n`;
    expect(errorsOf(withBody('ä'.repeat(32_768)))).toEqual([]);
    expect(errorsOf(withBody('ä'.repeat(32_769)))).toEqual([
      'policy.yaml:2:26: denied_response.body: the body is longer than 65536 bytes; shorten it',
    ]);
    expect(errorsOf(withBody('a'.repeat(65_537)))).toEqual([
      'policy.yaml:2:26: denied_response.body: "body" has 65537 characters; write at most 65536',
    ]);
  });

  test('refuses a long media type, and counts characters as the schema does', () => {
    const withType = (type: string) => `domain: d\ndenied_response: { body: b, content_type: ${type} }\n`;
    const place = 'policy.yaml:2:43: denied_response.content_type:';
    expect(errorsOf(withType(`text/${'x'.repeat(251)}`))).toEqual([]);
    expect(errorsOf(withType(`text/${'x'.repeat(252)}`))).toEqual([
      `${place} "content_type" has 257 characters; write at most 256`,
    ]);
    expect(errorsOf(withType('😀'.repeat(256)))).toEqual([
      expect.stringMatching(/content_type: ".*" is not a valid media type; /),
    ]);
  });
});

test('decision_metadata is true or false', () => {
  expect(policyOf('domain: d\ndecision_metadata: true\n').decisionMetadata).toBe(true);
  expect(policyOf('domain: d\ndecision_metadata: false\n').decisionMetadata).toBe(false);
  expect(policyOf('domain: d\n').decisionMetadata).toBeUndefined();
  expect(errorsOf('domain: d\ndecision_metadata: maybe\n')).toEqual([
    'policy.yaml:2:20: decision_metadata: "decision_metadata" is "maybe"; write true or false',
  ]);
});

test('an unlimited rule has no answer of its own', () => {
  const { policy, problems } = parse(
    'domain: d\ndescriptors:\n- key: k\n  rate_limit: { unlimited: true, response_headers: ' +
      '[ratelimit], denied_response: problem+json }\n',
  );
  expect(policy).toBeDefined();
  expect(problems.warnings.map(({ message }) => message)).toEqual([
    '"response_headers" is ignored, because the rule is unlimited; remove it',
    '"denied_response" is ignored, because the rule is unlimited; remove it',
  ]);
});
