/* Requests whose matching takes more work than a request may cause. */
import { describe, expect, test } from '@jest/globals';
import { CODE, type Descriptor, type RateLimitResponse } from '../../../src/codec/messages.js';
import { DEFAULT_MAX_REGEX_VALUE_BYTES } from '../../../src/policy/match-work.js';
import { CALLER_WITHOUT_DEADLINE } from '../../../src/service/caller.js';
import { Refusal } from '../../../src/service/refusal.js';
import { TurnQueue } from '../../../src/service/turn-queue.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

/** An expression that cannot match a value of one letter. */
const COSTLY = '.*a.{40}b';

/** A value that is too long for regular expressions. */
const costly = (): string => 'a'.repeat(DEFAULT_MAX_REGEX_VALUE_BYTES + 1);

function policyOf(node: string, more = ''): string {
  return `domain: d
${more}
descriptors:
  - key: path
    value_regex: '${COSTLY}'
    rate_limit: { name: matched, unit: hour, requests_per_unit: 100 }
    ${node}
  - key: tenant
    rate_limit: { name: tenants, unit: hour, requests_per_unit: 100 }
    shadow_mode: true
`;
}

async function decide(decider: Decider, descriptors: readonly Descriptor[]): Promise<RateLimitResponse> {
  const request = { domain: 'd', descriptors, hitsAddend: 0 };
  const decided = await decider.service.decide(request, CALLER_WITHOUT_DEADLINE);
  if (decided instanceof Refusal) throw new Error(decided.message);
  return decided;
}

const value = descriptor([`path=${costly()}`]);

describe('a value that exceeds the match budget', () => {
  test('is over the limit if an enforced rule could have matched, and no hits are taken', async () => {
    const decider = new Decider(policyOf(''));
    const response = await decide(decider, [descriptor(['tenant=a']), value]);
    expect(response.overallCode).toBe(CODE.OVER_LIMIT);
    expect(response.statuses).toEqual([
      { code: CODE.OK, currentLimit: undefined, limitRemaining: 0, durationUntilResetSeconds: undefined },
      { code: CODE.OVER_LIMIT, currentLimit: undefined, limitRemaining: 0, durationUntilResetSeconds: 1 },
    ]);
    expect(decider.observer.told).toEqual(['d regex_value exceeded denied']);
    expect(decider.answer([descriptor(['tenant=a'])]).statuses[0]).toMatchObject({ limitRemaining: 99 });
  });

  test.each([
    ['error', 'on_store_failure: error'],
    ['allow', 'on_store_failure: allow'],
    ['local', 'on_store_failure: local'],
  ])('is over the limit with any on_store_failure: %s', async (_name, setting) => {
    const decider = new Decider(policyOf('', setting));
    expect((await decide(decider, [value])).overallCode).toBe(CODE.OVER_LIMIT);
  });

  test.each([
    ['monitoring', policyOf('', 'phase: monitoring')],
    ['a grace period', policyOf('', 'phase: grace_period')],
    ['shadow mode', policyOf('shadow_mode: true')],
    ['a percentage of 0', policyOf('enforce_percent: 0')],
  ])('is allowed if no enforced rule could have matched: %s', async (_name, policy) => {
    const decider = new Decider(policy);
    const response = await decide(decider, [value]);
    expect(response.overallCode).toBe(CODE.OK);
    expect(response.statuses).toHaveLength(1);
    expect(decider.observer.told).toContain('d regex_value exceeded');
  });

  test.each([
    [0.3, CODE.OVER_LIMIT],
    [0.7, CODE.OK],
  ])('is denied with the percentage of its rule: drawn %d', async (drawn, code) => {
    const decider = new Decider(policyOf('enforce_percent: 50'), { random: () => drawn });
    expect((await decide(decider, [value])).overallCode).toBe(code);
  });

  test('with a limit override is over the limit if the override is enforced', async () => {
    const limit = { requestsPerUnit: 10, unit: 2 };
    const active = new Decider(policyOf('shadow_mode: true'));
    expect((await decide(active, [{ ...value, limit }])).overallCode).toBe(CODE.OVER_LIMIT);
    const monitored = new Decider(policyOf('', 'phase: monitoring'));
    expect((await decide(monitored, [{ ...value, limit }])).overallCode).toBe(CODE.OK);
  });

  test('with a limit override is over the limit if an override could be enforced', async () => {
    const limit = { requestsPerUnit: 10, unit: 2 };
    // The node that the value may match is active, regardless of the domain's phase. Without such a node, the
    // domain's phase counts.
    for (const [domain, node] of [
      ['monitoring', 'active'],
      ['active', 'monitoring'],
    ] as const) {
      const decider = new Decider(policyOf(`phase: ${node}`, `phase: ${domain}`));
      expect((await decide(decider, [{ ...value, limit }])).overallCode).toBe(CODE.OVER_LIMIT);
    }
  });

  test('is allowed in SHADOW_MODE, with a status of the denial', async () => {
    const decider = new Decider(policyOf(''), { answers: { shadowMode: true } });
    const response = await decide(decider, [value]);
    expect([response.overallCode, response.statuses[0]?.code]).toEqual([CODE.OK, CODE.OVER_LIMIT]);
    expect(decider.observer.told).toEqual(['d regex_value exceeded', 'global shadow']);
  });

  test('has the answer of other denials, as far as possible', async () => {
    const decider = new Decider(
      policyOf(
        '',
        'response_headers: [x-ratelimit, retry-after]\ndenied_response: { body: busy, content_type: ' +
          'text/x }\ndecision_metadata: true',
      ),
    );
    const response = await decide(decider, [value]);
    expect(headers(response)).toEqual({
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(1_700_000_000 + 1),
      'x-ratelimit-will-be-throttled': 'true',
      'retry-after': '1',
      'content-type': 'text/x',
    });
    expect(Buffer.from(response.rawBody ?? []).toString()).toBe('busy');
    expect(response.dynamicMetadata).toMatchObject({
      decision: {
        code: 'OVER_LIMIT',
        domain: 'd',
        rule: '',
        reason: 'match_budget_exceeded',
        retry_after: 1,
      },
    });
  });

  test('has problem details without a policy', async () => {
    const decider = new Decider(policyOf('', 'denied_response: problem+json'));
    const { rawBody } = await decide(decider, [value]);
    expect(JSON.parse(Buffer.from(rawBody ?? []).toString())).toMatchObject({ 'violated-policies': [] });
  });

  describe('of a customer whom a plan may block, at a soft limit', () => {
    const soft = `domain: d
plans: { by: tenant, define: { evil: { blocked: true }, me: { calls: 1 } } }
descriptors:
  - key: tenant
    descriptors:
      - key: path
        value_regex: '${COSTLY}'
        rate_limit: { unit: hour, requests_per_unit: { plan: calls, default: 100 }, on_over: { allow: true } }
`;
    const customer = (tenant: string) => descriptor([`tenant=${tenant}`, `path=${costly()}`]);

    test('is over the limit if a row blocks a customer, because weir has not looked up the customer', async () => {
      for (const [policy, code] of [
        [soft, CODE.OVER_LIMIT],
        [soft.replace('blocked: true', 'calls: 0'), CODE.OK],
      ] as const) {
        expect((await decide(new Decider(policy), [customer('me')])).overallCode).toBe(code);
      }
    });
  });

  test('is decided normally if it is short', async () => {
    const decider = new Decider(policyOf(''));
    const response = await decide(decider, [descriptor([`path=a${'c'.repeat(40)}b`])]);
    expect(response.statuses[0]).toMatchObject({ currentLimit: { name: 'matched' }, limitRemaining: 99 });
  });
});

describe('a large message', () => {
  const large = (domain: string, count: number) => ({
    domain,
    descriptors: Array.from({ length: count }, (_, i) => descriptor([`tenant=${i}`.padEnd(100, 'x')])),
    hitsAddend: 0,
  });

  test('is decided in turns, and copied', async () => {
    const decider = new Decider(policyOf(''));
    const message = decider.codec.encodeRequest(large('d', 1000));
    const late = decider.service.handle(message);
    expect(late).toBeInstanceOf(Promise);
    message.fill(0);
    const answer = await late;
    if (answer instanceof Refusal) throw new Error(answer.message);
    const { overallCode, statuses } = decider.codec.decodeResponse(answer);
    expect(overallCode).toBe(CODE.OK);
    expect(statuses).toHaveLength(1000);
    expect(statuses[999]).toMatchObject({ limitRemaining: 99 });
  });

  test('without space in the queue is decided by its domain only', async () => {
    const turns = new TurnQueue({ monotonicMicros: () => 0, maxJobs: 0 });
    const ask = async (policy: string, domain: string | undefined) => {
      const decider = new Decider(policy, { turns, domainOf: () => domain });
      const answer = await decider.service.handle(decider.codec.encodeRequest(large('d', 1000)));
      if (answer instanceof Refusal) return [answer.kind, decider.observer.told];
      const { overallCode, statuses } = decider.codec.decodeResponse(answer);
      return [overallCode, statuses.length, decider.observer.told];
    };
    expect(await ask(policyOf(''), 'd')).toEqual([CODE.OVER_LIMIT, 0, ['d full denied']]);
    const monitored = policyOf('', 'phase: monitoring');
    expect(await ask(monitored, 'd')).toEqual([CODE.OK, 0, ['d full']]);
    expect(await ask(policyOf(''), 'other')).toEqual([CODE.OK, 0, ['unknown other']]);
    expect(await ask(policyOf(''), '')).toEqual(['bad_request', ['failed for service']]);
    expect(await ask(policyOf(''), undefined)).toEqual(['bad_request', ['failed for service']]);
  });

  test('without space in the queue is over the limit if it may have an override that could be enforced', async () => {
    const turns = new TurnQueue({ monotonicMicros: () => 0, maxJobs: 0 });
    const override = { requestsPerUnit: 10, unit: 2 };
    const shadow = (more: string) =>
      policyOf('shadow_mode: true', more).split('  - key: tenant')[0] as string;
    const ask = async (policy: string, limit: typeof override | undefined) => {
      const decider = new Decider(policy, { turns });
      const { descriptors } = large('d', 200);
      const last = descriptor(['tenant=last'], { limit });
      const request = { domain: 'd', descriptors: [...descriptors, last], hitsAddend: 0 };
      const answer = await decider.service.handle(decider.codec.encodeRequest(request));
      if (answer instanceof Refusal) throw new Error(answer.message);
      return decider.codec.decodeResponse(answer).overallCode;
    };
    expect(await ask(shadow(''), override)).toBe(CODE.OVER_LIMIT);
    expect(await ask(shadow(''), undefined)).toBe(CODE.OK);
    expect(await ask(shadow('phase: monitoring'), override)).toBe(CODE.OK);
    // An override may end at a node without rules, which has its own phase.
    const node = (phase: string) =>
      `domain: d\nphase: monitoring\ndescriptors:\n  - { key: tenant, phase: ${phase} }\n`;
    expect(await ask(node('active'), override)).toBe(CODE.OVER_LIMIT);
    expect(await ask(node('grace_period'), override)).toBe(CODE.OK);
    expect(await ask(node('active'), undefined)).toBe(CODE.OK);
  });

  test('that is malformed is refused', async () => {
    const decider = new Decider(policyOf(''));
    expect(await decider.service.handle(new Uint8Array(20_000).fill(0xff))).toMatchObject({
      kind: 'bad_request',
    });
    expect(await decider.service.handle(decider.codec.encodeRequest(large('', 1000)))).toMatchObject({
      kind: 'bad_request',
    });
    const unknown = await decider.service.handle(decider.codec.encodeRequest(large('unknown', 1000)));
    if (unknown instanceof Refusal) throw new Error(unknown.message);
    expect(decider.codec.decodeResponse(unknown).statuses).toHaveLength(1000);
  });
});
