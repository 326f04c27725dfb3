import { expect, test } from '@jest/globals';
import { LONG_TIMEOUTS, startStack } from '../support/envoy/stack.js';
import { headersLike, httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir } from '../support/weir/weir.js';

const CHATS = '/open/v5/user-chats';
const headers = { 'x-tenant': 'acme' };
/** The health checks of deploy/, ten times as often. */
const OFTEN = [
  'interval: 2s\n          no_traffic_interval: 2s',
  'interval: 0.2s\n          no_traffic_interval: 0.2s',
] as const;

test.each([
  ['clear text', 'false', 200],
  ['mTLS', 'true', 503],
] as const)(
  'in %s, while weir is stopped: failure_mode_deny: %s answers %i, and weir enforces the limit again when it is back',
  async (security, deny, status) => {
    const changes = [
      ...LONG_TIMEOUTS,
      OFTEN,
      ['failure_mode_deny: false', `failure_mode_deny: ${deny}`],
    ] as const;
    const stack = await startStack({ changes, security });
    const { envoy, weir, weirEnv } = stack;
    const get = () => httpRequest(envoy.port, CHATS, { headers });
    const limited = await get();
    expect(limited.status).toBe(200);
    expect(headersLike(limited, 'x-ratelimit')).toHaveLength(3);

    await weir.stop();
    const without = await get();
    expect(without.status).toBe(status);
    expect(headersLike(without, 'x-ratelimit')).toEqual([]);

    // Envoy's health check detects that weir stopped, and the responses stay the same.
    await waitFor('Envoy to see that weir is gone', async () => !(await envoy.weirIsHealthy()));
    expect((await get()).status).toBe(status);

    // As in deploy/, the drain delay is longer than the two checks that Envoy needs to notice.
    const again = await startWeir({ ports: weir, env: { ...weirEnv, SHUTDOWN_DRAIN_DELAY: '2s' } });
    await waitFor('Envoy to see that weir is back', () => envoy.weirIsHealthy());
    // On a busy machine, a connection can be late for Envoy once more, but not for long.
    const back = await waitFor('a decision', async () => {
      const answer = await get();
      return headersLike(answer, 'x-ratelimit').length > 0 ? answer : undefined;
    });
    expect(back.status).toBe(200);
    expect(headersLike(back, 'x-ratelimit')).toHaveLength(3);

    // A weir that receives SIGTERM leaves no request without a decision.
    const stopped = again.stop();
    await waitFor('Envoy to see that weir drains', async () => {
      // weir keeps deciding until Envoy has noticed.
      const answer = await get();
      if (!(await envoy.weirIsHealthy())) return true;
      expect(headersLike(answer, 'x-ratelimit')).toHaveLength(3);
      return undefined;
    });
    expect(again.process.isRunning()).toBe(true);
    await expect(stopped).resolves.toEqual({ code: 0, signal: null });
  },
);
