import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { fireBurst } from '../support/envoy/burst.js';
import { withChanges } from '../support/envoy/envoy.js';
import { SECURITIES, startStack } from '../support/envoy/stack.js';
import { headerOf, headersLike } from '../support/process/http-client.js';
import { repositoryRoot } from '../support/process/tools.js';

const POLICY = readFileSync(join(repositoryRoot, 'deploy/policies/open-api.yaml'), 'utf8');

describe.each(['monitoring', 'grace_period'])('in phase %s', (phase) => {
  test.each(SECURITIES)(
    'denies nothing, and reports in every answer whether it would, in %s',
    async (security) => {
      const stack = await startStack({
        security,
        policy: withChanges(POLICY, [['phase: active', `phase: ${phase}`]]),
      });
      const burst = await fireBurst(stack.envoy.port, '/open/v5/user-chats', 200, { 'x-tenant': 'acme' });
      expect(burst.count(200)).toBe(200);
      const told = burst.answers.map((answer) => headerOf(answer, 'x-ratelimit-will-be-throttled'));
      const fits = told.filter((value) => value === 'false').length;
      expect(fits).toBeGreaterThanOrEqual(100);
      expect(fits).toBeLessThanOrEqual(100 + Math.floor((burst.lastAnsweredAt - burst.firstSentAt) / 100));
      expect(told.filter((value) => value === 'true')).toHaveLength(200 - fits);
      for (const answer of burst.answers) {
        expect(
          headersLike(answer, 'x-ratelimit')
            .map(([name]) => name)
            .sort(),
        ).toEqual([
          'x-ratelimit-limit',
          'x-ratelimit-remaining',
          'x-ratelimit-reset',
          'x-ratelimit-will-be-throttled',
        ]);
      }
    },
  );
});
