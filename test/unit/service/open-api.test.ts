import { describe, expect, test } from '@jest/globals';
import { readAsset } from '../../../src/assets.js';
import { CODE } from '../../../src/codec/messages.js';
import { BUNDLED_POLICY } from '../../../src/server/settings/policy-place.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

/* The behaviour that docs/start.md and the bundled policy promise, with a clock that does not advance. */

const newDecider = () => new Decider(readAsset(BUNDLED_POLICY));

/** Returns how many of `count` requests are allowed. */
function passed(decider: Decider, count: number, ...texts: string[]): number {
  let ok = 0;
  for (let index = 0; index < count; index++) {
    const response = decider.answer([descriptor(texts)], 0, 'open-api');
    if (response.overallCode === CODE.OK) ok++;
  }
  return ok;
}

const chats = (tenant: string, version = 'v5') => [
  `tenant=${tenant}`,
  'method=GET',
  `path=/open/${version}/user-chats`,
];

describe('the bundled policy', () => {
  test('allows 100 of 200 concurrent requests with a full bucket, and 10 of 100 a second later', () => {
    const decider = newDecider();
    expect(passed(decider, 200, ...chats('acme'))).toBe(100);
    decider.clock.advance(1_000_000);
    expect(passed(decider, 100, ...chats('acme'))).toBe(10);
    decider.clock.advance(1_000_000_000);
    expect(passed(decider, 200, ...chats('acme'))).toBe(100);
  });

  test('all other resources share a bucket of 1000 that refills 10 per second', () => {
    const decider = newDecider();
    expect(passed(decider, 600, 'tenant=acme', 'method=GET', 'path=/open/v5/users')).toBe(600);
    expect(passed(decider, 600, 'tenant=acme', 'method=DELETE', 'path=/open/v4/channels/7')).toBe(400);
    decider.clock.advance(1_000_000);
    expect(passed(decider, 100, 'tenant=acme', 'method=GET', 'path=/open/v5/users')).toBe(10);
  });

  test('v4 and v5 of the user chats list share a bucket; the other group and other tenants do not', () => {
    const decider = newDecider();
    expect(passed(decider, 60, ...chats('acme', 'v4'))).toBe(60);
    expect(passed(decider, 60, ...chats('acme', 'v5'))).toBe(40);
    expect(passed(decider, 1, ...chats('acme', 'v4'))).toBe(0);
    expect(passed(decider, 1000, 'tenant=acme', 'method=GET', 'path=/open/v5/users')).toBe(1000);
    expect(passed(decider, 100, ...chats('umbrella'))).toBe(100);
  });

  test('has the same buckets for (tenant, resource_group) in requests', () => {
    const decider = newDecider();
    expect(passed(decider, 100, 'tenant=acme', 'resource_group=user-chats')).toBe(100);
    expect(passed(decider, 1, ...chats('acme'))).toBe(0);
  });

  test('an API key replaces the tenant, with its own bucket', () => {
    const decider = newDecider();
    const byKey = (key: string) => [`api_key=${key}`, 'method=GET', 'path=/open/v5/user-chats'];
    expect(passed(decider, 101, ...byKey('one'))).toBe(100);
    expect(passed(decider, 1, ...byKey('two'))).toBe(1);
    expect(passed(decider, 1, 'api_key=one', 'resource_group=user-chats')).toBe(0);
  });

  test('several keys of a tenant share its bucket', () => {
    // printf %s one | sha256sum; printf %s two | sha256sum
    const table = `{
      7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed: acme,
      3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3: acme }`;
    const decider = new Decider(readAsset(BUNDLED_POLICY).replace('sha256: {}', `sha256: ${table}`));
    const byKey = (key: string) => [`api_key=${key}`, 'method=GET', 'path=/open/v5/user-chats'];
    expect(passed(decider, 60, ...byKey('one'))).toBe(60);
    expect(passed(decider, 60, ...byKey('two'))).toBe(40);
    expect(passed(decider, 1, ...chats('acme'))).toBe(0);
  });

  test.each([
    ['GET', '/open/v5/user-chats?x=1', 'user-chats'],
    ['GET', '/open//v5/user-chats/', 'user-chats'],
    ['GET', '/open/v5/user%2Dchats', 'user-chats'],
    ['GET', '/open/v5/x/../user-chats', 'user-chats'],
    ['GET', '/open/v5/./%75ser-chats', 'user-chats'],
    ['POST', '/open/v5/user-chats', 'other'],
    ['GET', '/open/v5/user-chats/123', 'other'],
    ['GET', '/open/v6/user-chats', 'other'],
    ['GET', '/open/v5/User-Chats', 'other'],
    ['GET', '/open/.hidden/%0A', 'other'],
    ['GET', '/open/', 'other'],
    ['GET', '/closed/v5/user-chats', undefined],
    ['GET', '/Open/v5/user-chats', undefined],
    ['GET', '/open/../v5', undefined],
    ['GET', '/openly', undefined],
    ['GET', '/', undefined],
  ])('%s %s belongs to the group %s', (method, path, group) => {
    const response = newDecider().answer(
      [descriptor(['tenant=acme', `method=${method}`, `path=${path}`])],
      0,
      'open-api',
    );
    expect(response.statuses[0]?.currentLimit?.name).toBe(group);
    expect(Object.keys(headers(response))).toHaveLength(group === undefined ? 0 : 3);
  });

  test('a throttled response has four headers, other responses have three', () => {
    const decider = newDecider();
    const ask = () => headers(decider.answer([descriptor(chats('acme'))], 0, 'open-api'));
    expect(ask()).toEqual({
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '99',
      'x-ratelimit-reset': '1700000001',
    });
    passed(decider, 99, ...chats('acme'));
    expect(ask()).toEqual({
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '1700000001',
      'x-ratelimit-will-be-throttled': 'true',
    });
  });
});
