import { describe, expect, test } from '@jest/globals';
import type { AnswerOptions } from '../../../src/service/answer/answer-options.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

const RULES = `
descriptors:
  - { key: a, rate_limit: { name: ä, unit: hour, requests_per_unit: 0 } }
  - { key: b, rate_limit: { unit: hour, requests_per_unit: 0 } }
  - { key: fits, rate_limit: { unit: hour, requests_per_unit: 9 } }
  - { key: watched, phase: monitoring, rate_limit: { unit: hour, requests_per_unit: 0 } }
  - { key: own, rate_limit: { unit: day, requests_per_unit: 0, denied_response: { body: "<b>no</b>", content_type: text/html } } }
  - { key: text, rate_limit: { unit: hour, requests_per_unit: 0, denied_response: { body: wait } } }
  - { key: none, rate_limit: { unit: hour, requests_per_unit: 0, denied_response: { body: "" } } }
`;

function asked(denied: string, texts: readonly string[], answers: Partial<AnswerOptions> = {}) {
  const decider = new Decider(`domain: d\n${denied}${RULES}`, { answers });
  const response = decider.answer(texts.map((text) => descriptor([text])));
  const body = response.rawBody === undefined ? undefined : Buffer.from(response.rawBody).toString();
  return { body, headers: headers(response), response };
}

const problem = (...names: string[]) => ({
  type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  title: 'Request cannot be satisfied as assigned quota has been exceeded',
  status: 429,
  detail: 'The request exceeds the maximum that the limit can ever allow, so it will always be denied.',
  'violated-policies': names,
});

describe('denied_response', () => {
  test('problem+json names the limits that denied, like RateLimit-Policy', () => {
    for (const [texts, names] of [
      [['a=x'], ['%C3%A4']],
      [['b=x', 'fits=x', 'watched=x'], ['b']],
      [
        ['a=x', 'b=x', 'b=y'],
        ['%C3%A4', 'b'],
      ],
    ] as const) {
      const { body, headers } = asked('denied_response: problem+json', texts);
      expect(JSON.parse(body ?? '')).toEqual(problem(...names));
      expect(headers).toEqual({ 'content-type': 'application/problem+json' });
    }
  });

  test("a text has its media type, and the rule's text overrides the file's", () => {
    expect(asked('denied_response: problem+json', ['own=x'])).toMatchObject({
      body: '<b>no</b>',
      headers: { 'content-type': 'text/html' },
    });
    expect(asked('', ['own=x']).body).toBe('<b>no</b>');
    expect(asked('denied_response: problem+json', ['text=x'])).toMatchObject({ body: 'wait', headers: {} });
  });

  test('the rule with the latest reset determines the body', () => {
    expect(asked('', ['text=x', 'own=x']).body).toBe('<b>no</b>');
  });

  test('an empty text means no body', () => {
    expect(asked('denied_response: problem+json', ['none=x'])).toMatchObject({
      body: undefined,
      headers: {},
    });
  });

  test('is missing if allowed, in monitoring, in SHADOW_MODE, or without a setting', () => {
    for (const [texts, answers] of [
      [['fits=x'], {}],
      [['watched=x'], {}],
      [['own=x'], { shadowMode: true }],
      [['unknown=x'], {}],
    ] as const) {
      const { body, headers } = asked('denied_response: problem+json', texts, answers);
      expect(body).toBeUndefined();
      expect(headers).toEqual({});
    }
    expect(asked('', ['a=x'])).toMatchObject({ body: undefined, headers: {} });
  });
});
