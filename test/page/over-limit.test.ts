/* Tests what the page shows about limits that do not simply deny: soft limits, chains, and limits with plans. */
import { describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { axeViolations, overflow } from '../support/page/browser.js';
import { servedPages } from '../support/page/served-pages.js';
import { goTo, showBucket } from '../support/page/views.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath } from '../support/process/tools.js';

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
const served = servedPages();

const POLICY = `domain: chat
plans:
  by: tenant
  from: customers.csv
  default: free
  define:
    free: { burst: 2, calls: 3 }
    gold: { burst: 20, calls: 30 }
    trial: { burst: 5, phase: monitoring }
    internal: { unlimited: true }
    suspended: { blocked: true }
descriptors:
  - key: tenant
    rate_limits:
      - name: large-model
        token_bucket: { max_tokens: { plan: burst }, fill_interval: 30m }
        on_over: { allow: true, request_headers: [{ x-over: large }], metadata: { model: small } }
      - { name: plan, unit: hour, requests_per_unit: { plan: calls, default: 4 }, then: credits }
      - { name: credits, token_bucket: { max_tokens: 3, fill_interval: 2920h } }
    descriptors:
      - { key: path, rate_limit: { unit: hour, requests_per_unit: { plan: calls, default: 4 } } }
  - { key: quiet, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - { key: route, phase: monitoring, rate_limit: { unit: hour, requests_per_unit: 5, on_over: { allow: true } } }
`;
const CUSTOMERS = `tenant,plan,burst
acme,gold,
mallory,suspended,
staff,internal,
tester,trial,
broken,gold,many
`;

const folder = new TempDir();

/** Starts a server whose table has a refused row. */
async function openChat(width: 'desk' | 'phone'): Promise<Page> {
  folder.write('policy.yaml', POLICY);
  folder.write('customers.csv', CUSTOMERS);
  await served.start({ env: { CONFIG_PATH: folder.path } });
  return await served.open({ width });
}

const sound = async (page: Page): Promise<void> => {
  expect([await overflow(page), await axeViolations(page)]).toEqual([0, []]);
};

describePage('limits that do not simply deny', () => {
  test.each(['desk', 'phone'] as const)('are in the rules on a %s', async (width) => {
    const page = await openChat(width);
    await goTo(page, 'rules');
    const head = page.locator('#rules-place .card');
    await head.getByText('Requests over a limit are denied, unless the limit is soft.').waitFor();
    const facts = async (name: string, summary: RegExp): Promise<string> => {
      const rule = page.locator('details.rule').filter({ has: page.locator('summary', { hasText: name }) });
      await expect(rule.locator('summary').first().innerText()).resolves.toMatch(summary);
      await rule.locator('summary').first().click();
      return await rule.locator('.facts').innerText();
    };
    const soft = await facts(
      'tenant[large-model]',
      /2 tokens, 1 every 30m; max_tokens from.*passes if over, with/s,
    );
    expect(soft).toContain('max_tokens from the plan value burst');
    expect(soft).toContain('passes if over, with x-over: large and metadata {"model":"small"}');
    const first = await facts('tenant[plan]', /window: 3 per hour.*then "credits"/s);
    expect(first).toContain('The phase of the last limit of the chain applies.');
    await facts('tenant[credits]', /3 tokens, 1 every 2920h.*active\s*pays after "plan"/s);
    expect(await facts('quiet', /active\s*shadow mode/)).toContain('shadow mode');
    await facts('route', /monitoring\s*passes if over/);
    await sound(page);
    await goTo(page, 'plans');
    const plans = page.locator('#view-plans .card');
    await plans.getByText(/tenant from customers\.csv: 4 rows, 1 refused; default free/).waitFor();
    await plans.getByText('trial: burst 5, phase monitoring').waitFor();
    await plans.getByText('suspended: blocked true').waitFor();
    await plans.getByText('tenant[plan]: window: 3 per hour').waitFor();
    await expect(plans.locator('.state.bad').innerText()).resolves.toMatch(/1 row refused/);
    await sound(page);
  });

  test.each(['desk', 'phone'] as const)('are in the bucket of a customer on a %s', async (width) => {
    const page = await openChat(width);
    const shown = async (entries: Record<string, string>): Promise<string> => {
      await showBucket(page, 'chat', entries);
      return (await page.locator('#bucket-panel').innerText()).replaceAll(/\s+/g, ' ');
    };
    const acme = await shown({ tenant: 'acme' });
    expect(acme).toContain('token bucket: 20 tokens, 1 every 30m; max_tokens from the plan value burst');
    expect(acme).toContain('The limit is soft: requests over it pass.');
    expect(acme).toMatch(/tenant\[plan\] plan 30 30 .*●with its chain/);
    expect(acme).toContain('Requests over the limit take from "credits" instead.');
    expect(acme).toMatch(/Plan: gold \(line 2 of customers\.csv, read \d+ seconds? ago\)\./);
    await sound(page);
    const mallory = await shown({ tenant: 'mallory' });
    expect(mallory.match(/The customer is blocked, so the limit allows no requests\./g)).toHaveLength(3);
    expect(mallory).not.toContain('take from');
    expect(mallory).toContain('Plan: suspended, blocked (line 3 of customers.csv');
    const staff = await shown({ tenant: 'staff' });
    expect(staff).toContain('The rule is unlimited');
    expect(staff).toContain('Plan: internal, unlimited (line 4');
    expect(staff).not.toContain('more limit');
    const tester = await shown({ tenant: 'tester' });
    expect(tester).toContain('pass, without marks because the limit is in the monitoring phase.');
    expect(await shown({ tenant: 'nobody' })).toContain('Plan: free (the customer has no row).');
    const part = await shown({ path: '/a' });
    expect(part).toContain('Values from plans are those of customers without a row. Add a value for tenant.');
    expect(part).toContain('window: 3 per hour; requests_per_unit from the plan value calls');
    await sound(page);
  });
});
