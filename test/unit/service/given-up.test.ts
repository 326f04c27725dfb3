/* Requests that get an answer without a decision: above a bound, or after a wait. */
import { describe, expect, test } from '@jest/globals';
import {
  CODE,
  DEFAULT_BOUNDS,
  type Descriptor,
  type RateLimitResponse,
} from '../../../src/codec/messages.js';
import { MatchWork } from '../../../src/policy/match-work.js';
import { CALLER_WITHOUT_DEADLINE } from '../../../src/service/caller.js';
import { MAX_WAITING_REQUESTS } from '../../../src/service/large-requests.js';
import { Refusal } from '../../../src/service/refusal.js';
import { encodeResponse } from '../../support/codec/wire-codec.js';
import { Decider, type DeciderOptions, descriptor, headers } from '../../support/policy/decider.js';

const POLICY = `domain: d
descriptors:
  - key: path
    value_regex: '.*/admin/.*'
    rate_limit: { name: admin, unit: hour, requests_per_unit: 100 }
  - key: tenant
    rate_limits: [{ name: tenants, unit: hour, requests_per_unit: 100 }, { unit: day, requests_per_unit: 1000 }]
`;
const BOUNDS = { maxBytes: 6000, maxDescriptors: 40, maxEntries: 60 };

function requestOf(count: number, texts: readonly string[]): readonly Descriptor[] {
  return Array.from({ length: count }, () => descriptor(texts));
}

/** A request for each bound that it exceeds. */
const REQUESTS: Readonly<Record<string, readonly Descriptor[]>> = {
  request_bytes: [descriptor(['tenant=a']), descriptor([`tenant=${'x'.repeat(6000)}`])],
  descriptors: requestOf(41, ['tenant=a']),
  entries: requestOf(21, ['tenant=a', 'b=c', 'd=e']),
  limits: requestOf(5, ['tenant=a']),
  regex_value: [descriptor([`path=${'x'.repeat(301)}`])],
  match_work: Array.from({ length: 20 }, (_, i) => descriptor([`path=${i}`])),
};

async function decide(decider: Decider, descriptors: readonly Descriptor[], domain = 'd') {
  const message = decider.codec.encodeRequest({ domain, descriptors, hitsAddend: 0 });
  const answer = await decider.service.handle(message);
  return answer instanceof Refusal ? answer : decider.codec.decodeResponse(encodeResponse(answer));
}

async function answerOf(decider: Decider, descriptors: readonly Descriptor[]): Promise<RateLimitResponse> {
  const answer = await decide(decider, descriptors);
  if (answer instanceof Refusal) throw new Error(answer.message);
  return answer;
}

function started(policy = POLICY, options: DeciderOptions = {}): Decider {
  return new Decider(policy, {
    bounds: BOUNDS,
    maxLimits: 9,
    matchWork: new MatchWork(1000, 300),
    ...options,
  });
}

describe.each(Object.entries(REQUESTS))('a request above the bound %s', (why, descriptors) => {
  test('is denied without statuses and takes no hits, in a domain that enforces', async () => {
    const decider = started();
    expect(await answerOf(decider, descriptors)).toMatchObject({
      overallCode: CODE.OVER_LIMIT,
      statuses: [],
      responseHeadersToAdd: [],
      dynamicMetadata: undefined,
    });
    expect(decider.observer.told).toEqual([`d ${why} denied`]);
    expect(decider.answer([descriptor(['tenant=a'])]).statuses[0]).toMatchObject({ limitRemaining: 99 });
  });

  test.each<[string, string, DeciderOptions, string[]]>([
    ['monitors', `${POLICY}phase: monitoring\n`, {}, []],
    ['is in a grace period', `${POLICY}phase: grace_period\n`, {}, []],
    ['enforces 0%', `${POLICY}enforce_percent: 0\n`, {}, []],
    ['has SHADOW_MODE', POLICY, { answers: { shadowMode: true } }, ['global shadow']],
  ])('is allowed without headers, in a domain that %s', async (_name, policy, options, more) => {
    const decider = started(`${policy}response_headers: [x-ratelimit, retry-after]\n`, options);
    expect(await answerOf(decider, descriptors)).toEqual({
      overallCode: CODE.OK,
      statuses: [],
      responseHeadersToAdd: [],
      requestHeadersToAdd: [],
      rawBody: undefined,
      dynamicMetadata: undefined,
    });
    expect(decider.observer.told).toEqual([`d ${why}`, ...more]);
  });
});

test('requests at the bounds are decided', async () => {
  const decider = started(POLICY, { maxLimits: 80, matchWork: new MatchWork(10_000, 300) });
  const exactly: readonly (readonly Descriptor[])[] = [
    requestOf(40, ['tenant=a']),
    requestOf(20, ['tenant=a', 'b=c', 'd=e']),
    [descriptor([`path=${'x'.repeat(300)}`])],
  ];
  for (const descriptors of exactly) {
    expect((await answerOf(decider, descriptors)).statuses).toHaveLength(descriptors.length);
  }
  const [prefix] = exactly as readonly [readonly Descriptor[]];
  const size = decider.codec.encodeRequest({ domain: 'd', descriptors: prefix, hitsAddend: 0 }).length;
  const tight = started(POLICY, { maxLimits: 80, bounds: { ...BOUNDS, maxBytes: size } });
  expect((await answerOf(tight, prefix)).statuses).toHaveLength(40);
});

test('the defaults are those of the manual', () => {
  expect(DEFAULT_BOUNDS).toEqual({ maxBytes: 65_536, maxDescriptors: 128, maxEntries: 1000 });
});

describe('a request that was not decided is denied only if a rule may deny it:', () => {
  const tooMany = REQUESTS['descriptors'] as readonly Descriptor[];
  const node = (text: string, more = ''): string =>
    `domain: d\n${more}\ndescriptors:\n  - { key: k, ${text} }\n`;
  const LIMIT = 'rate_limit: { unit: hour, requests_per_unit: 5 }';

  test.each<[string, string, number, DeciderOptions]>([
    ['an active node in a monitored domain', node(`phase: active, ${LIMIT}`, 'phase: monitoring'), 2, {}],
    ['a monitored node', node(`phase: monitoring, ${LIMIT}`, 'phase: monitoring'), 1, {}],
    ['an override in an active domain without limits', 'domain: d\n', 2, {}],
    ['an override at an active node without limits', node('phase: active', 'phase: monitoring'), 2, {}],
    ['quota mode', node(`quota_mode: true, phase: active, ${LIMIT}`, 'phase: monitoring'), 2, {}],
    [
      'a schedule before its start',
      node(LIMIT, 'phase: { grace_period: 2000-01-01T00:00:00Z, active: 2100-01-01T00:00:00Z }'),
      1,
      {},
    ],
    [
      'a schedule after its start',
      node(LIMIT, 'phase: { grace_period: 2000-01-01T00:00:00Z, active: 2001-01-01T00:00:00Z }'),
      2,
      {},
    ],
  ])('%s', async (_name, policy, code, options) => {
    const decider = started(policy, options);
    expect((await answerOf(decider, tooMany)).overallCode).toBe(code);
  });

  test.each([
    [0.3, CODE.OVER_LIMIT],
    [0.7, CODE.OK],
  ])('a percentage of 50, drawn %d', async (drawn, code) => {
    const list = 'rate_limits: [{ phase: active, enforce_percent: 50, unit: hour, requests_per_unit: 5 }]';
    const decider = started(node(list, 'phase: monitoring'), { random: () => drawn });
    expect((await answerOf(decider, tooMany)).overallCode).toBe(code);
  });

  test('a soft limit, if a row of plans blocks a customer', async () => {
    const soft = (row: string): string => `domain: d
phase: monitoring
plans: { by: tenant, define: { evil: { ${row} }, me: { calls: 1 } } }
descriptors:
  - key: tenant
    phase: monitoring
    rate_limits:
      - phase: active
        unit: hour
        requests_per_unit: { plan: calls, default: 100 }
        on_over: { allow: true }
`;
    expect((await answerOf(started(soft('blocked: true')), tooMany)).overallCode).toBe(CODE.OVER_LIMIT);
    expect((await answerOf(started(soft('calls: 0')), tooMany)).overallCode).toBe(CODE.OK);
  });
});

describe('the denial', () => {
  const denied = REQUESTS['descriptors'] as readonly Descriptor[];

  test('has the body of the domain, a header to retry, and a decision with the reason', async () => {
    const decider = started(
      `${POLICY}response_headers: [x-ratelimit, retry-after]\nrequest_headers: [x-ratelimit]\n` +
        'denied_response: { body: busy, content_type: text/x }\ndecision_metadata: true\n',
    );
    const response = await answerOf(decider, denied);
    expect(headers(response)).toEqual({ 'retry-after': '1', 'content-type': 'text/x' });
    expect(response.requestHeadersToAdd).toEqual([]);
    expect(Buffer.from(response.rawBody ?? []).toString()).toBe('busy');
    expect(response.dynamicMetadata).toMatchObject({
      decision: { code: 'OVER_LIMIT', domain: 'd', rule: '', reason: 'descriptors', retry_after: 1 },
    });
  });

  test('has problem details without a policy', async () => {
    const { rawBody } = await answerOf(started(`${POLICY}denied_response: problem+json\n`), denied);
    expect(JSON.parse(Buffer.from(rawBody ?? []).toString())).toMatchObject({ 'violated-policies': [] });
  });

  test('has no header that Envoy adds itself', async () => {
    const answers = { envoyAdds: { xRateLimit: false, retryAfter: true } };
    const decider = started(`${POLICY}response_headers: [retry-after]\n`, { answers });
    expect((await answerOf(decider, denied)).responseHeadersToAdd).toEqual([]);
  });
});

describe('what holds before the bounds:', () => {
  const above = REQUESTS['request_bytes'] as readonly Descriptor[];

  test('an unknown domain is allowed, an empty one refused', async () => {
    const decider = started();
    expect(await decide(decider, above, 'other')).toMatchObject({ overallCode: CODE.OK, statuses: [] });
    expect(await decide(decider, above, '')).toMatchObject({ kind: 'bad_request' });
    expect(decider.observer.told).toEqual(['unknown other']);
  });

  test('without a configuration, the request is refused', async () => {
    const decider = started(POLICY, { loaded: false });
    expect(await decide(decider, above)).toMatchObject({ kind: 'unavailable' });
  });

  test('a request whose last entry is cut off is not invalid', async () => {
    const decider = started(POLICY, { bounds: { ...BOUNDS, maxBytes: 8 } });
    expect(await decide(decider, [descriptor(['tenant=a'])])).toMatchObject({ overallCode: CODE.OVER_LIMIT });
  });
});

describe('a large request', () => {
  const large = requestOf(40, ['tenant=a']);

  test('waits for its turn, and is then decided; its buffer may change meanwhile', async () => {
    const decider = started(POLICY, { maxLimits: 80 });
    const message = decider.codec.encodeRequest({ domain: 'd', descriptors: large, hitsAddend: 0 });
    const late = decider.service.handle(message);
    expect(late).toBeInstanceOf(Promise);
    message.fill(0);
    const answer = await late;
    if (answer instanceof Refusal) throw new Error(answer.message);
    expect(answer.statuses[39]).toMatchObject({ limitRemaining: 60 });
  });

  test('is denied if it waits too long, and not decided if its caller has gone', async () => {
    const decider = started(POLICY, { maxLimits: 80 });
    const request = { domain: 'd', descriptors: large, hitsAddend: 0 };
    const caller = { ...CALLER_WITHOUT_DEADLINE, deadlineMicros: decider.clock.monotonicMicros() + 20_000 };
    const late = decider.service.decide(request, caller);
    const gone = decider.service.decide(request, { ...caller, cancelled: () => true });
    decider.clock.advance(5000);
    expect(await late).toMatchObject({ overallCode: CODE.OVER_LIMIT, statuses: [] });
    expect(await gone).toBeInstanceOf(Refusal);
    expect(decider.observer.told).toEqual(['d late denied']);
  });

  test('is denied at once if 1,000 others wait', async () => {
    const decider = started(POLICY, { maxLimits: 80 });
    const request = { domain: 'd', descriptors: large, hitsAddend: 0 };
    const others = Array.from({ length: MAX_WAITING_REQUESTS }, () => decider.service.decide(request));
    expect(decider.service.decide(request)).toMatchObject({ overallCode: CODE.OVER_LIMIT, statuses: [] });
    expect(decider.observer.told).toEqual(['d full denied']);
    await Promise.all(others);
  });
});
