/* Chains of limits (`then`): if a limit is used up, the next one pays. */
import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { UnavailableStore } from '../../support/limiter/unavailable-store.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

const HOUR = 3_600_000_000;
const PLAN = '{ name: plan, then: credits, token_bucket: { max_tokens: 2, fill_interval: 1h } }';
const credits = (rest = '') =>
  `{ name: credits, token_bucket: { max_tokens: 3, fill_interval: 8760h }${rest} }`;

const policy = (limits: string, rest = '', head = ''): string =>
  `domain: d\nresponse_headers: [x-ratelimit, ratelimit]\n${head}\n` +
  `descriptors: [{ key: k${rest}, rate_limits: [${limits}] }]\n`;

/** Returns what a request gets: its code, the limits in its headers, and the tokens that are left. */
function asked(decider: Decider, hits = 1) {
  const response = decider.answer([descriptor(['k=x'])], hits);
  const found = headers(response);
  return [
    response.overallCode === CODE.OVER_LIMIT ? 'denied' : 'allowed',
    String(found['ratelimit']).replace(/;t=.*/, ''),
    found['x-ratelimit-spilled'],
  ];
}

describe('a limit that spills', () => {
  test('pays first, then the next limit pays, and then the chain denies', () => {
    const decider = new Decider(policy(`${PLAN}, ${credits()}`));
    expect(asked(decider)).toEqual(['allowed', '"plan";r=1', undefined]);
    expect(asked(decider)).toEqual(['allowed', '"plan";r=0', undefined]);
    expect(asked(decider)).toEqual(['allowed', '"credits";r=2', 'credits']);
    decider.clock.advance(HOUR);
    expect(asked(decider)).toEqual(['allowed', '"plan";r=0', undefined]);
    expect(asked(decider, 2)).toEqual(['allowed', '"credits";r=0', 'credits']);
    expect(asked(decider)).toEqual(['denied', '"plan";r=0', undefined]);
    decider.clock.advance(HOUR);
    expect(asked(decider)).toEqual(['allowed', '"plan";r=0', undefined]);
  });

  test('never divides the hits of a request', () => {
    const decider = new Decider(policy(`${PLAN}, ${credits()}`));
    expect(asked(decider, 3)).toEqual(['allowed', '"credits";r=0', 'credits']);
    expect(asked(decider, 3)).toEqual(['denied', '"credits";r=0', undefined]);
    expect(asked(decider, 2)).toEqual(['allowed', '"plan";r=0', undefined]);
  });

  test('can be followed by another one', () => {
    const middle = '{ name: credits, then: bought, token_bucket: { max_tokens: 1, fill_interval: 1h } }';
    const last = '{ name: bought, token_bucket: { max_tokens: 1, fill_interval: 1h } }';
    const decider = new Decider(policy(`${PLAN}, ${middle}, ${last}`));
    const paid = Array.from({ length: 5 }, () => asked(decider)[2] ?? 'none');
    expect(paid).toEqual(['none', 'none', 'credits', 'bought', 'none']);
  });

  test('takes nothing if another limit denies the request', () => {
    const other = '{ name: other, token_bucket: { max_tokens: 1, fill_interval: 1h } }';
    const decider = new Decider(policy(`${PLAN}, ${credits()}, ${other}`));
    expect(asked(decider)[0]).toBe('allowed');
    expect(asked(decider)[0]).toBe('denied');
    decider.clock.advance(HOUR);
    expect(asked(decider)[0]).toBe('allowed');
    decider.clock.advance(HOUR);
    expect(asked(decider)[2]).toBeUndefined();
  });

  test('pays for a peek only if there is room for a hit, also if it is a window', () => {
    const window = '{ name: plan, then: credits, unit: year, requests_per_unit: 2 }';
    const decider = new Decider(policy(`${window}, ${credits(', allow_debt: true')}`));
    const peek = () => {
      const response = decider.answer([descriptor(['k=x'], { hitsAddend: 0 })]);
      return [response.overallCode, String(headers(response)['ratelimit']).replace(/;t=.*/, '')];
    };
    expect(peek()).toEqual([CODE.OK, '"plan";r=2']);
    asked(decider, 2);
    expect(peek()).toEqual([CODE.OK, '"credits";r=3']);
    asked(decider, 5);
    expect(peek()).toEqual([CODE.OVER_LIMIT, '"plan";r=0']);
    expect(peek()).toEqual([CODE.OVER_LIMIT, '"plan";r=0']);
  });

  test('has the header of a limit whose denials are partly enforced, if the last limit is one', () => {
    const decider = new Decider(policy(`${PLAN}, ${credits(', enforce_percent: 50')}`), { random: () => 0 });
    const response = decider.answer([descriptor(['k=x'])]);
    expect(headers(response)['x-ratelimit-will-be-throttled']).toBe('false');
  });

  test('gives a refund to the first limit', () => {
    const decider = new Decider(policy(`${PLAN}, ${credits()}`));
    for (let i = 0; i < 3; i++) asked(decider);
    decider.answer([descriptor(['k=x'], { isNegativeHits: true })]);
    expect(asked(decider)).toEqual(['allowed', '"plan";r=0', undefined]);
    expect(asked(decider)).toEqual(['allowed', '"credits";r=1', 'credits']);
  });

  test.each([
    ['the phase of the last limit', `${PLAN}, ${credits(', phase: monitoring')}`, ''],
    ['the phase of the descriptor', `${PLAN}, ${credits()}`, ', phase: monitoring'],
    ['shadow mode', `${PLAN}, ${credits(', shadow_mode: true')}`, ''],
  ])('never denies in %s', (_, limits, rest) => {
    const decider = new Decider(policy(limits, rest));
    for (let i = 0; i < 5; i++) asked(decider);
    expect(asked(decider)[0]).toBe('allowed');
  });

  test('is counted once, and the limit that paid is reported', () => {
    const decider = new Decider(policy(`${PLAN}, ${credits()}`));
    for (let i = 0; i < 6; i++) asked(decider);
    const { told } = decider.observer;
    expect(told.filter((line) => line.includes('spilled'))).toEqual(Array(3).fill('d k[plan] spilled'));
    expect(told.filter((line) => line.endsWith('k[plan] OK'))).toHaveLength(2);
    expect(told.filter((line) => line.endsWith('k[credits] OK'))).toHaveLength(3);
    expect(told.filter((line) => line.endsWith('k[plan] OVER_LIMIT'))).toHaveLength(1);
  });

  test('is replaced together with its chain', () => {
    const limits = `${PLAN}, ${credits()}`;
    const decider = new Decider(
      `domain: d\ndescriptors:\n  - { key: k, rate_limits: [${limits}] }\n` +
        '  - { key: o, rate_limit: { replaces: [{ name: credits }], unit: hour, requests_per_unit: 9 } }\n',
    );
    for (let i = 0; i < 9; i++) {
      expect(decider.answer([descriptor(['k=x']), descriptor(['o=x'])]).overallCode).toBe(CODE.OK);
    }
    expect(decider.answer([descriptor(['k=x'])]).statuses[0]?.limitRemaining).toBe(1);
  });

  test.each([
    ['deny', 'denied'],
    ['allow', 'allowed'],
  ])('follows the policy %s of the last limit without the store', (failure, expected) => {
    const decider = new Decider(policy(`${PLAN}, ${credits(`, on_store_failure: ${failure}`)}`), {
      store: new UnavailableStore(),
    });
    expect(asked(decider)[0]).toBe(expected);
  });
});
