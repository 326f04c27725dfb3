import { describe, expect, test } from '@jest/globals';
import { PATIENT, SECURITIES, startStack } from '../support/envoy/stack.js';
import { headersLike, httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir } from '../support/weir/weir.js';

const CHATS = '/open/v5/user-chats';
const headers = { 'x-tenant': 'acme' };

describe.each(SECURITIES)('in %s, while weir is stopped', (security) => {
  test.each([
    ['false', 200],
    ['true', 503],
  ])(
    'failure_mode_deny: %s answers %i, and the limit is back with weir',
    async (deny, status) => {
      const changes = [...PATIENT, ['failure_mode_deny: false', `failure_mode_deny: ${deny}`]] as const;
      const stack = await startStack({ changes, security });
      try {
        const { envoy, weir, weirEnv } = stack;
        const get = () => httpRequest(envoy.port, CHATS, { headers });
        const limited = await get();
        expect(limited.status).toBe(200);
        expect(headersLike(limited, 'x-ratelimit')).toHaveLength(3);

        await weir.stop();
        const without = await get();
        expect(without.status).toBe(status);
        expect(headersLike(without, 'x-ratelimit')).toEqual([]);

        // Envoy's health check finds that weir is gone, and nothing changes.
        await waitFor(
          'Envoy to see that weir is gone',
          async () => !(await envoy.weirIsHealthy()) || undefined,
        );
        expect((await get()).status).toBe(status);

        const again = await startWeir({ ports: weir, env: weirEnv });
        await waitFor(
          'Envoy to see that weir is back',
          async () => (await envoy.weirIsHealthy()) || undefined,
        );
        // On a busy machine a connection may be late for Envoy once more, but not for long.
        const back = await waitFor(
          'a decision',
          async () => {
            const answer = await get();
            return headersLike(answer, 'x-ratelimit').length > 0 ? answer : undefined;
          },
          2000,
        );
        expect(back.status).toBe(200);
        expect(headersLike(back, 'x-ratelimit')).toHaveLength(3);
        await again.stop();
      } finally {
        await stack.stop();
      }
    },
    60_000,
  );
});

test.each(SECURITIES)(
  'a weir that is told to stop leaves no request without a decision, in %s',
  async (security) => {
    const stack = await startStack({ security });
    try {
      const { envoy, weir, weirEnv } = stack;
      await weir.stop();
      // The drain delay of deploy/ is longer than it takes Envoy to notice: two checks, two seconds apart.
      const draining = await startWeir({ ports: weir, env: { ...weirEnv, SHUTDOWN_DRAIN_DELAY: '5s' } });
      await waitFor('Envoy to see weir', async () => (await envoy.weirIsHealthy()) || undefined);
      const stopped = draining.stop();
      await waitFor('Envoy to see that weir drains', async () => {
        // Until then weir goes on deciding.
        const answer = await httpRequest(envoy.port, CHATS, { headers });
        if (!(await envoy.weirIsHealthy())) return true;
        expect(headersLike(answer, 'x-ratelimit')).toHaveLength(3);
        return undefined;
      });
      expect(draining.process.isRunning()).toBe(true);
      await expect(stopped).resolves.toEqual({ code: 0, signal: null });
    } finally {
      await stack.stop();
    }
  },
  60_000,
);
