/* Limits with `on_over`: requests over them pass, and are marked. */
import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { UnavailableStore } from '../../support/limiter/unavailable-store.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

const k = descriptor(['k=x']);
const SOFT =
  '{ name: soft, token_bucket: { max_tokens: 1, fill_interval: 1h }, ' +
  'on_over: { allow: true, request_headers: [{ X-Over: soft }], metadata: { tier: low } } }';
const HARD = '{ name: hard, token_bucket: { max_tokens: 3, fill_interval: 1h } }';

const policy = (node: string, head = ''): string => `domain: d\n${head}\ndescriptors: [{ ${node} }]\n`;
const list = (...limits: readonly string[]): string => `key: k, rate_limits: [${limits.join(', ')}]`;

/** Returns what a request gets: its code, its marks, and the remaining hits. */
function asked(decider: Decider, ...all: readonly string[]) {
  const response = decider.answer(all.length === 0 ? [k] : all.map((text) => descriptor([text])));
  return {
    denied: response.overallCode === CODE.OVER_LIMIT,
    headers: response.requestHeadersToAdd.map(({ key, value }) => `${key}: ${value}`),
    over: response.dynamicMetadata?.['over'],
    remaining: response.statuses[0]?.limitRemaining,
  };
}
const NOT_MARKED = { denied: false, headers: [], over: undefined };
const MARKED = { denied: false, headers: ['x-over: soft'], over: { tier: 'low' } };

describe('a soft limit', () => {
  test('marks the requests over it, which pass', () => {
    const decider = new Decider(policy(`key: k, rate_limit: ${SOFT}`));
    expect(asked(decider)).toEqual({ ...NOT_MARKED, remaining: 0 });
    expect(asked(decider)).toEqual({ ...MARKED, remaining: 0 });
    decider.clock.advance(3_600_000_000);
    expect(asked(decider)).toEqual({ ...NOT_MARKED, remaining: 0 });
  });

  test('comes below a hard limit, which denies without marks and is the one that statuses describe', () => {
    const decider = new Decider(policy(list(SOFT, HARD)));
    expect(asked(decider)).toEqual({ ...NOT_MARKED, remaining: 2 });
    expect(asked(decider)).toEqual({ ...MARKED, remaining: 1 });
    expect(asked(decider)).toEqual({ ...MARKED, remaining: 0 });
    expect(asked(decider)).toEqual({ ...NOT_MARKED, denied: true, remaining: 0 });
  });

  test('is not described by headers next to a hard limit, and is no reason for will-be-throttled', () => {
    const decider = new Decider(
      policy(list(SOFT, HARD), 'response_headers: [x-ratelimit]\nenforce_percent: 50'),
    );
    asked(decider);
    expect(headers(decider.answer([k]))).toMatchObject({
      'x-ratelimit-limit': '3',
      'x-ratelimit-will-be-throttled': 'false',
    });
  });

  test.each([
    ['the phase monitoring', 'phase: monitoring', {}],
    ['shadow mode', 'shadow_mode: true', {}],
    ['enforce_percent', 'enforce_percent: 0', {}],
    ['SHADOW_MODE', 'shadow_mode: false', { shadowMode: true }],
  ])('marks nothing in %s', (_name, setting, answers) => {
    const decider = new Decider(policy(`key: k, ${setting}, rate_limit: ${SOFT}`), { answers });
    asked(decider);
    expect(asked(decider)).toEqual({ ...NOT_MARKED, remaining: 0 });
    expect(decider.observer.told.at(-1)).toBe('d k passed over');
  });

  test('with others: the first one sets a header or a member of the metadata', () => {
    const other = SOFT.replace('name: soft', 'name: other')
      .replace('{ X-Over: soft }', '{ x-over: other }, { x-also: "1" }')
      .replace('tier: low', 'tier: none, queue: slow');
    const decider = new Decider(policy(list(SOFT, other)));
    asked(decider);
    expect(asked(decider)).toMatchObject({
      headers: ['x-over: soft', 'x-also: 1'],
      over: { tier: 'low', queue: 'slow' },
    });
  });

  test('marks a request once, whichever of its descriptors is over', () => {
    const decider = new Decider(policy(`key: k, rate_limit: ${SOFT}`));
    asked(decider, 'k=a', 'k=b');
    expect(asked(decider, 'k=a', 'k=b')).toEqual({ ...MARKED, remaining: 0 });
    expect(asked(decider, 'k=c')).toEqual({ ...NOT_MARKED, remaining: 0 });
  });

  test('is counted apart from denials and from limits that would deny', () => {
    const decider = new Decider(policy(list(SOFT, HARD)));
    asked(decider);
    decider.observer.told.length = 0;
    asked(decider);
    expect(decider.observer.told).toEqual([
      'd k[soft] OK',
      'd k[soft] passed over and marked',
      'd k[hard] OK',
    ]);
  });

  test('is no quota, also with QUOTA_MODE', () => {
    const quota = '{ name: quota, unit: hour, requests_per_unit: 1 }';
    const decider = new Decider(policy(list(SOFT, quota)), { answers: { quotaMode: true } });
    asked(decider);
    expect(asked(decider)).toMatchObject({ denied: true, headers: [] });
  });

  test('next to a limit in shadow mode, or alone, does not let a quota deny', () => {
    const quota = 'key: q, rate_limit: { name: q, unit: hour, requests_per_unit: 1 }';
    const watched = '{ name: watched, shadow_mode: true, unit: hour, requests_per_unit: 1 }';
    for (const node of [list(watched, SOFT), `key: k, rate_limit: ${SOFT}`]) {
      const decider = new Decider(policy(`${node} }, { ${quota}`), { answers: { quotaMode: true } });
      asked(decider, 'k=x', 'q=x');
      expect(asked(decider, 'k=x', 'q=x')).toMatchObject(MARKED);
    }
  });

  test('next to a hard limit is in no list of limits', () => {
    const families = (head: string) => headers(new Decider(policy(list(SOFT, HARD), head)).answer([k]));
    expect(families('response_headers: [ratelimit]')['ratelimit']).toBe('"hard";r=2;t=3600');
    expect(families('response_headers: [ratelimit-draft-03]')['ratelimit-limit']).toBe('3, 3;w=10800');
    const alone = new Decider(policy(`key: k, rate_limit: ${SOFT}`, 'response_headers: [ratelimit]'));
    expect(headers(alone.answer([k]))['ratelimit']).toBe('"soft";r=0;t=3600');
  });

  test('is described by the headers of the environment only if there is no other limit', () => {
    const limitHeaders = { limit: 'l', remaining: 'r', reset: 't' };
    const text = policy(`key: k, rate_limit: ${SOFT} }, { key: h, rate_limit: ${HARD}`);
    const decider = new Decider(text, { answers: { limitHeaders } });
    const both = decider.answer([descriptor(['k=x']), descriptor(['h=x'])]);
    expect(headers(both)).toMatchObject({ l: '3', r: '2' });
    expect(headers(decider.answer([k]))).toMatchObject({ l: '1', r: '0' });
  });

  test('has no warning about hits that never fit, and is not in `passed` while it is exceeded', () => {
    const decider = new Decider(policy(`key: k, rate_limit: ${SOFT}`, 'decision_metadata: true'));
    const decisionOf = (hits: number) => decider.answer([k], hits).dynamicMetadata?.['decision'];
    expect(decisionOf(5)).not.toHaveProperty('reason');
    expect(decisionOf(5)).not.toHaveProperty('passed');
    expect(decider.observer.told.filter((told) => told.includes('never'))).toEqual([]);
    expect(decisionOf(1)).toMatchObject({ passed: { soft: 0 } });
  });

  test.each([
    ['error', NOT_MARKED],
    ['allow', NOT_MARKED],
    ['deny', MARKED],
  ])('lets requests pass without a store, with on_store_failure: %s', (failure, expected) => {
    const limit = SOFT.replace('{ name', `{ on_store_failure: ${failure}, name`);
    const decider = new Decider(policy(`key: k, rate_limit: ${limit}`), { store: new UnavailableStore() });
    expect(asked(decider)).toMatchObject(expected);
  });

  test('counts alone without a store, with on_store_failure: local', () => {
    const limit = SOFT.replace('{ name', '{ on_store_failure: local, name');
    const decider = new Decider(policy(`key: k, rate_limit: ${limit}`), { store: new UnavailableStore() });
    expect(asked(decider)).toMatchObject(NOT_MARKED);
    expect(asked(decider)).toMatchObject(MARKED);
  });

  test('on concurrent requests counts all requests in flight, also those over it', () => {
    const limit =
      'rate_limit: { concurrency: { max: 1 }, on_over: { allow: true, metadata: { busy: true } } }';
    const decider = new Decider(policy(`key: k, ${limit}`));
    const start = () => decider.answer([k]).dynamicMetadata ?? {};
    const end = (hold: unknown) => decider.answer([descriptor([`hold=${hold}`])]);
    const { hold, over } = start();
    expect(over).toBeUndefined();
    const second = start();
    expect(second['over']).toEqual({ busy: true });
    end(hold);
    const third = start();
    expect(third['over']).toEqual({ busy: true });
    end(second['hold']);
    end(third['hold']);
    expect(start()['over']).toBeUndefined();
  });
});
