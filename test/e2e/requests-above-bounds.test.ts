/* What Envoy does with a request above a bound, whose answer has no statuses. */
import { expect, test } from '@jest/globals';
import { LONG_TIMEOUTS, startStack } from '../support/envoy/stack.js';
import { headersLike, httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';

const POLICY = `domain: open-api
response_headers: [x-ratelimit, retry-after]
denied_response: { body: busy, content_type: text/x }
decision_metadata: true
descriptors:
  - key: tenant
    descriptors:
      - key: method
        descriptors:
          - { key: path, rate_limit: { unit: hour, requests_per_unit: 100 } }
`;
/** Lower than the default, because the upstream takes no longer paths. */
const WEIR_ENV = { MAX_REQUEST_BYTES: '4096' };

test.each([
  ['false', 'active', 429],
  ['true', 'active', 429],
  ['false', 'monitoring', 200],
  ['true', 'monitoring', 200],
] as const)(
  'with failure_mode_deny: %s, a path of 8 KB in a domain in the phase %s gets %i',
  async (deny, phase, status) => {
    const changes = [...LONG_TIMEOUTS, ['failure_mode_deny: false', `failure_mode_deny: ${deny}`]] as const;
    const policy = `${POLICY}phase: ${phase}\n`;
    const stack = await startStack({ changes, policy, weirEnv: WEIR_ENV });
    const get = (path: string) => httpRequest(stack.envoy.port, path, { headers: { 'x-tenant': 'acme' } });
    const usual = await get('/a');
    expect(usual.status).toBe(200);
    expect(headersLike(usual, 'x-ratelimit')).not.toEqual([]);

    const large = await get(`/${'x'.repeat(8000)}`);
    expect(large.status).toBe(status);
    expect(headersLike(large, 'x-ratelimit-')).toEqual([]);
    if (status === 429) {
      expect(large.body).toBe('busy');
      expect(headersLike(large, 'retry-after')).toEqual([['retry-after', '1']]);
      // The access log of deploy/envoy/envoy.yaml has the dynamic metadata of denied requests.
      const line = await waitFor('the access log', () =>
        stack.envoy.process.lines().find((text) => text.startsWith('{')),
      );
      expect(JSON.parse(line)).toMatchObject({ status: 429, code: 'OVER_LIMIT', rule: '', retry_after: 1 });
    }
    // Neither an error nor a late decision, which failure_mode_deny would decide.
    expect(await stack.envoy.stat('cluster.upstream.ratelimit.error')).toBe(0);
    expect(await stack.envoy.stat('cluster.upstream.ratelimit.over_limit')).toBe(status === 429 ? 1 : 0);
  },
  60_000,
);

test('Envoy adds no x-ratelimit headers of its own, which describe statuses', async () => {
  const changes = [
    ...LONG_TIMEOUTS,
    ['enable_x_ratelimit_headers: "OFF"', 'enable_x_ratelimit_headers: DRAFT_VERSION_03'],
  ] as const;
  const policy = POLICY.replace('response_headers: [x-ratelimit, retry-after]\n', '');
  const stack = await startStack({ changes, policy, weirEnv: WEIR_ENV });
  const get = (path: string) => httpRequest(stack.envoy.port, path, { headers: { 'x-tenant': 'acme' } });
  expect(headersLike(await get('/a'), 'x-ratelimit')).toHaveLength(3);
  const large = await get(`/${'x'.repeat(8000)}`);
  expect([large.status, headersLike(large, 'x-ratelimit')]).toEqual([429, []]);
  expect(headersLike(large, 'x-envoy-ratelimited')).toEqual([['x-envoy-ratelimited', 'true']]);
}, 60_000);
