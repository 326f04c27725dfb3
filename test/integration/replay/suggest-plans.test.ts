/* Tests `weir suggest` with logs of services whose limits depend on plans. */
import { expect, test } from '@jest/globals';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

const START_MILLIS = Date.parse('2026-11-20T09:00:00Z');
const PLANS = ['free', 'gold'];
/** An hour, in which customers of the plan gold send ten times as many requests as those of the plan free. */
const lines = Array.from({ length: 3600 }, (_, second) =>
  PLANS.flatMap((plan) =>
    second % (plan === 'gold' ? 6 : 60) > 0
      ? []
      : [0, 1, 2].map((customer) =>
          JSON.stringify({
            start: new Date(START_MILLIS + second * 1000 + customer).toISOString(),
            tenant: `${plan}-${customer}`,
            plan,
          }),
        ),
  ),
).flat();
folder.write('access.log', `${lines.join('\n')}\n`);

const action = (key: string) => `{ request_headers: { header_name: x-${key}, descriptor_key: ${key} } }`;
function writeMapping(keys: readonly string[]): void {
  folder.write(
    'mapping.yaml',
    `domain: shop
log: { time: start, x-tenant: tenant, x-plan: plan }
rate_limits: [{ actions: [${keys.map(action).join(', ')}] }]
`,
  );
}

const suggest = (...args: readonly string[]) =>
  host.run({ args: ['suggest', '--by', 'tenant', '--envoy', 'mapping.yaml', ...args], folder: folder.path });

/** Returns the rates of token buckets in a policy, with the value of the descriptor that they are in. */
const ratesOf = (policy: string) =>
  [...policy.matchAll(/value: (\w+)\n.*?tokens_per_fill: (\d+), fill_interval: (\w+)/gs)].map(
    ([, value, count, unit]) => [value, count, unit],
  );

test('with the plan in the descriptors, each plan gets its own limit', async () => {
  writeMapping(['plan', 'tenant']);
  const { stdout, code } = await suggest('access.log');
  expect(code).toBe(0);
  folder.write('suggested.yaml', stdout);
  const checked = await host.run({ args: ['check-config', 'suggested.yaml'], folder: folder.path });
  expect(checked.stdout).toBe('ok: 1 file, shop (2 rules)\n');
  // With 20% of headroom.
  expect(ratesOf(stdout)).toEqual([
    ['free', '75', '1h'],
    ['gold', '12', '1m'],
  ]);
});
