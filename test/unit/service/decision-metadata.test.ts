import { describe, expect, test } from '@jest/globals';
import type { Descriptor } from '../../../src/codec/messages.js';
import type { AnswerOptions } from '../../../src/service/answer/answer-options.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

const RULES = `
descriptors:
  - key: tenant
    descriptors:
      - { key: group, value: chats, rate_limit: { name: chats, token_bucket: { max_tokens: 2, fill_interval: 10s } } }
  - { key: watched, phase: { grace_period: 1970-01-01T00:00:00Z }, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: api_key, value: very-secret, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: free, rate_limit: { unlimited: true } }
`;

const on = (file: string, answers: Partial<AnswerOptions> = {}) =>
  new Decider(`domain: d\n${file}${RULES}`, { answers });
const decisionOf = (decider: Decider, ...descriptors: Descriptor[]) =>
  decider.answer(descriptors).dynamicMetadata?.['decision'];

const chats = descriptor(['tenant=acme', 'group=chats']);

describe('decision_metadata', () => {
  test('names the limit that the headers describe, allowed or denied', () => {
    const decider = on('decision_metadata: true');
    expect(decider.answer([chats]).dynamicMetadata).toEqual({
      decision: {
        code: 'OK',
        domain: 'd',
        rule: 'tenant/group=chats',
        name: 'chats',
        limit: 2,
        remaining: 1,
        retry_after: 0,
        phase: 'active',
        shadow_mode: false,
        would_be_throttled: false,
        passed: { chats: 1 },
        decided_at: '2023-11-14T22:13:20.000000Z',
      },
    });
    decider.answer([chats]);
    expect(decisionOf(decider, descriptor(['watched=x']), chats)).toMatchObject({
      code: 'OVER_LIMIT',
      rule: 'tenant/group=chats',
      remaining: 0,
      retry_after: 10,
      would_be_throttled: true,
    });
  });

  test('in monitoring, grace period and shadow mode contains the decision of the active phase', () => {
    const decider = on('decision_metadata: true');
    const passed = { code: 'OK', retry_after: 0, would_be_throttled: true };
    expect(decisionOf(decider, descriptor(['watched=x']))).toMatchObject({
      ...passed,
      phase: 'grace_period',
    });
    expect(decisionOf(decider, descriptor(['shadow=x']))).toMatchObject({
      ...passed,
      phase: 'active',
      shadow_mode: true,
    });
    const shadowed = on('decision_metadata: true', { shadowMode: true });
    shadowed.answer([chats], 2);
    expect(decisionOf(shadowed, chats)).toMatchObject(passed);
  });

  test('a limit override is the rule `override`, with the phase of the node', () => {
    const override = { limit: { requestsPerUnit: 5, unit: 2 } };
    const decider = on('decision_metadata: true');
    expect(decisionOf(decider, descriptor(['watched=x'], override))).toMatchObject({
      rule: 'override',
      name: '',
      limit: 5,
      phase: 'grace_period',
    });
  });

  test('lists the limits whose descriptors passed, with the hits that are left', () => {
    const decider = on('decision_metadata: true');
    const [acme, globex, free] = [
      chats,
      descriptor(['tenant=globex', 'group=chats']),
      descriptor(['free=x']),
    ];
    const secret = descriptor(['api_key=very-secret']);
    expect(decisionOf(decider, acme, free, secret)).toMatchObject({
      passed: { chats: 1, 'api_key=[redacted sha256:b6441336]': 0 },
    });
    // The smallest number of several descriptors with one name.
    expect(decisionOf(decider, globex, acme)).toMatchObject({ code: 'OK', passed: { chats: 0 } });
    // In a denied request, the descriptors that had room.
    expect(decisionOf(decider, globex, secret)).toMatchObject({ code: 'OVER_LIMIT', passed: { chats: 1 } });
    expect(decisionOf(decider, secret)).not.toHaveProperty('passed');
  });

  test('lists at most 32 names, and no name of more than 256 characters', async () => {
    const rules = Array.from(
      { length: 40 },
      (_, at) =>
        `  - { key: k${at}, rate_limit: { name: n${at || 'x'.repeat(256)}, unit: day, requests_per_unit: 9 } }\n`,
    );
    const decider = new Decider(`domain: d\ndecision_metadata: true\ndescriptors:\n${rules.join('')}`);
    const all = Array.from({ length: 40 }, (_, at) => descriptor([`k${at}=x`]));
    const { dynamicMetadata } = await decider.answerLarge(all);
    const { passed, ...decision } = (dynamicMetadata?.['decision'] ?? {}) as Record<string, unknown>;
    expect(Object.keys(passed as object)).toEqual(Array.from({ length: 32 }, (_, at) => `n${at + 1}`));
    expect(decision).toMatchObject({ passed_left_out: 8 });
  });

  test('is missing if no limit applied, and in unknown domains', () => {
    const decider = on('decision_metadata: true');
    for (const text of ['free=x', 'unknown=x']) {
      expect(decider.answer([descriptor([text])]).dynamicMetadata).toBeUndefined();
    }
    expect(decider.answer([chats], 0, 'other').dynamicMetadata).toBeUndefined();
  });

  test('uses the environment variable as the default', () => {
    const environment = { decisionMetadata: true };
    expect(decisionOf(on(''), chats)).toBeUndefined();
    expect(decisionOf(on('', environment), chats)).toMatchObject({ rule: 'tenant/group=chats' });
    expect(decisionOf(on('decision_metadata: false', environment), chats)).toBeUndefined();
  });

  test('tells when the request was decided, with microseconds', () => {
    const decider = on('decision_metadata: true');
    decider.clock.advance(1_234_567);
    expect(decisionOf(decider, chats)).toMatchObject({ decided_at: '2023-11-14T22:13:21.234567Z' });
  });

  test('tells when a request was given up, even long after the latest decision', () => {
    const decider = new Decider(`domain: d\ndecision_metadata: true\n${RULES}`, { maxLimits: 1 });
    const { clock } = decider;
    let latest = clock.wall;
    Object.assign(clock, {
      monotonicMicros: () => {
        latest = clock.wall;
        return clock.monotonic;
      },
      exactWallMicros: () => latest,
    });
    decider.answer([chats]);
    clock.advance(60_000_000);
    expect(decisionOf(decider, chats, chats)).toMatchObject({
      reason: 'limits',
      decided_at: '2023-11-14T22:14:20.000000Z',
    });
  });

  test('can be combined with RESPONSE_DYNAMIC_METADATA', () => {
    const decider = on('decision_metadata: true', { dynamicMetadata: true });
    expect(Object.keys(decider.answer([chats]).dynamicMetadata ?? {})).toEqual([
      'domain',
      'descriptors',
      'decision',
    ]);
  });

  test('contains no value of the request, and no credential of the policy', () => {
    const decider = on('decision_metadata: true');
    const text = (one: Descriptor) => JSON.stringify(decider.answer([one]).dynamicMetadata);
    expect(text(chats)).not.toContain('acme');
    expect(text(descriptor(['api_key=very-secret']))).toMatch(/"rule":"api_key=\[redacted sha256:/);
    expect(text(descriptor(['api_key=very-secret']))).not.toContain('very-secret');
  });
});
