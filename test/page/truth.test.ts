/* Tests that the page stays correct as time passes, while the store is unavailable, and if rates are not recorded. */
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { axeViolations } from '../support/page/browser.js';
import { servedPages } from '../support/page/served-pages.js';
import { goTo, VIEW_NAMES } from '../support/page/views.js';
import { descriptor } from '../support/policy/decider.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
const served = servedPages();

describePage('the phase of a single rule', () => {
  test('changes on the page at its scheduled time', async () => {
    const policy = (phase: string) => `domain: shop
descriptors:
  - key: customer
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: plan
    ${phase}
    rate_limit: { unit: hour, requests_per_unit: 5 }
`;
    const server = await served.start({ policy: policy('phase: monitoring') });
    const page = await served.open();
    await goTo(page, 'rules');
    const rule = page.locator('.rule', { hasText: 'plan' }).locator('summary').first();
    await rule.locator('.state', { hasText: 'monitoring' }).waitFor();
    const at = new Date(Math.ceil(Date.now() / 1000) * 1000 + 8000).toISOString();
    writeFileSync(server.policyPath ?? '', policy(`phase: { active: ${at} }`));
    await rule.getByText(/denies from \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, in \d+ seconds?/).waitFor();
    await expect(rule.locator('.state').innerText()).resolves.toMatch(/monitoring/);
    await rule.locator('.state', { hasText: 'active' }).waitFor();
    await expect(rule.innerText()).resolves.not.toContain('denies from');
  });
});

describePage('rules whose rates are not recorded', () => {
  test.each([
    ['0', /^HISTORY_RULES is 0, so weir records only the total rates of all rules/],
    ['1', /weir records the rates of 1 rule \(HISTORY_RULES\)\. Requests for other rules count/],
  ])('are marked as such with HISTORY_RULES=%s', async (rules, words) => {
    const server = await served.start({
      env: { HISTORY_RULES: rules },
      policy: `domain: shop
descriptors:
  - { key: quiet, rate_limit: { unit: year, requests_per_unit: 5 } }
  - { key: loud, rate_limit: { unit: year, requests_per_unit: 1 } }
`,
    });
    const client = new RlsClient(server.grpcPort);
    await client.ask('shop', [descriptor(['quiet=x'])]);
    const ask = () => client.ask('shop', [descriptor(['loud=x'])]);
    const page = await served.open();
    // The history keeps one rule of two: the first one that was counted.
    await page.locator('#traffic .rate').first().waitFor();
    await waitFor('the words', async () => {
      await ask();
      return words.test(await page.locator('#worst').innerText());
    });
    client.close();
    await expect(page.locator('#worst').innerText()).resolves.not.toContain('No rule has denied');
    await goTo(page, 'rules');
    const row = (key: string) => page.locator('.rule', { hasText: key }).locator('.sums').first();
    await row('loud').getByText('not recorded').waitFor();
    if (rules === '1') await expect(row('quiet').textContent()).resolves.toMatch(/1 in the last hour/);
    else await expect(row('quiet').textContent()).resolves.toBe('not recorded');
  });
});

describePage('rules with names that weir also uses for other counts', () => {
  test('are named like any other rule', async () => {
    const keys = ['constructor', '__proto__', 'override'];
    const rules = keys.map((key) => `  - { key: ${key}, rate_limit: { unit: year, requests_per_unit: 1 } }`);
    const server = await served.start({ policy: `domain: shop\ndescriptors:\n${rules.join('\n')}\n` });
    const client = new RlsClient(server.grpcPort);
    for (const key of keys) {
      for (let each = 0; each < 3; each++) await client.ask('shop', [descriptor([`${key}=x`])]);
    }
    client.close();
    const page = await served.open();
    const expectNames = (place: string) =>
      waitFor(`names in ${place}`, async () => {
        const text = await page.locator(place).innerText();
        const override = 'override (also counts overrides (limits in requests))';
        return (
          !text.includes('native code') &&
          ['constructor', '__proto__', override].every((one) => text.includes(one))
        );
      });
    await expectNames('#worst');
    await goTo(page, 'top');
    await expectNames('#top-rows');
  });
});

describePage('an unavailable store', () => {
  test('is reported on every view until it is back', async () => {
    const redis = await startRedis();
    const server = await served.start({
      env: { REDIS_URL: `127.0.0.1:${redis.port}` },
      policy: `domain: shop
descriptors:
- key: customer
  rate_limit: { unit: hour, requests_per_unit: 5 }
- key: guest
  rate_limit: { unit: hour, requests_per_unit: 5, on_store_failure: local }
`,
    });
    const client = new RlsClient(server.grpcPort);
    const ask = () => client.ask('shop', [descriptor(['customer=x'])]);
    await ask();
    const page = await served.open();
    await goTo(page, 'replicas');
    const node = page.locator('#store tbody tr');
    await waitFor('its latency', async () => /up.* ms/s.test(await node.innerText()));
    await expect(page.locator('#banner').innerText()).resolves.toBe('');
    await redis.kill();
    const banner = page.locator('#banner').getByText(/This page first noticed the problem at \d\d:\d\d:\d\d/);
    await waitFor('the banner', async () => {
      await ask();
      return (await banner.count()) > 0;
    });
    for (const view of VIEW_NAMES) {
      await goTo(page, view);
      await expect(banner.isVisible()).resolves.toBe(true);
    }
    await expect(page.locator('#banner').innerText()).resolves.toMatch(
      /unavailable.*on_store_failure setting determines/s,
    );
    expect(await axeViolations(page)).toEqual([]);
    await expect(node.innerText()).resolves.toMatch(/unavailable.*–/s);
    await expect(node.innerText()).resolves.not.toContain(' ms');
    await goTo(page, 'overview');
    await client.ask('shop', [descriptor(['guest=x'])]);
    const peakOf = async (name: string): Promise<string> =>
      await page.locator('#traffic .chart', { hasText: name }).locator('.peak').innerText();
    await waitFor('the errors', async () => /peak .*[1-9]/.test(await peakOf('Errors (calls)')));
    const local = page.locator('#traffic .chart', { hasText: 'Decided in memory, without the store' });
    await local.waitFor({ state: 'visible' });
    const denied = page.locator('#traffic .chart', { hasText: 'Denied without the store' });
    await expect(denied.isVisible()).resolves.toBe(false);
    await redis.restart();
    await waitFor('the end of it', async () => {
      await ask();
      return (await page.locator('#banner').innerText()) === '';
    });
    client.close();
  });
});

describePage('the rules with the most denials', () => {
  test('stay complete once all are shown', async () => {
    const keys = Array.from({ length: 60 }, (_, each) => `key-${each}`);
    const rules = keys.map((key) => `  - { key: ${key}, rate_limit: { unit: year, requests_per_unit: 1 } }`);
    const server = await served.start({ policy: `domain: shop\ndescriptors:\n${rules.join('\n')}\n` });
    const client = new RlsClient(server.grpcPort);
    const ask = () =>
      client.ask(
        'shop',
        keys.map((key) => descriptor([`${key}=x`])),
      );
    await ask();
    await ask();
    const page = await served.open();
    await page.getByRole('button', { name: 'Show all 60' }).click();
    const rows = page.locator('#worst tbody tr');
    await expect(rows.count()).resolves.toBe(60);
    // The next counts change the table.
    const before = await rows.first().innerText();
    await waitFor('other counts', async () => {
      await ask();
      return (await rows.first().innerText()) !== before;
    });
    client.close();
    await expect(rows.count()).resolves.toBe(60);
  });
});
