import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { loadPolicies } from '../../../../src/config/files/load-policies.js';
import type { CompiledPolicy } from '../../../../src/policy/compiled-policy.js';
import { assetPath } from '../../../../src/runtime/assets.js';
import { entries } from '../../../support/policy/policies.js';

const loaded = loadPolicies([assetPath('deploy/policies/open-api.yaml')]);
const policy = loaded.policySet.domains.get('open-api') as CompiledPolicy;
const USER_CHATS = '8:open-api6:tenant4:acme14:resource_group10:user-chats';
const OTHER = '8:open-api6:tenant4:acme14:resource_group1**';

const keyOf = (...texts: string[]): string => policy.match(entries(...texts)).keys[0]!;
const request = (method: string, path: string): string =>
  keyOf('tenant=acme', `method=${method}`, `path=${path}`);

describe('user chats share one bucket, for any spelling of the request', () => {
  test.each([
    '/open/v4/user-chats',
    '/open/v5/user-chats',
    // unit/policy/paths tests all spellings of a path.
    '/x/%2E%2E//open/./v5/user%2Dchats/?x=1',
  ])('GET %s', (path) => {
    expect(request('GET', path)).toBe(USER_CHATS);
  });

  test('the request can contain the resource group', () => {
    expect(keyOf('tenant=acme', 'resource_group=user-chats')).toBe(USER_CHATS);
    expect(keyOf('tenant=acme', 'resource_group=anything')).toBe(OTHER);
    expect(keyOf('tenant=acme', 'resource_group=')).toBe(OTHER);
  });
});

test('tenants have separate buckets, and so do API keys without a tenant', () => {
  expect(keyOf('tenant=globex', 'resource_group=user-chats')).not.toBe(USER_CHATS);
  const digest = createHash('sha256').update('k1').digest('hex');
  expect(keyOf('api_key=k1', 'method=GET', 'path=/open/v5/user-chats')).toBe(
    `8:open-api6:tenant71:sha256:${digest}14:resource_group10:user-chats`,
  );
  // A tenant whose name looks like a digest shares that bucket only if callers may name tenants.
  expect(keyOf('api_key=k2', 'resource_group=user-chats')).not.toContain('k2');
});
