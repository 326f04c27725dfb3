/* What the page says stays true: when time passes, when the store is away, and where figures are not kept. */
import { writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser, openPage, type WatchedPage } from '../support/page/browser.js';
import { goTo, untilHeard } from '../support/page/views.js';
import { optionalToolPath } from '../support/process/tools.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

jest.setTimeout(90_000);

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
let browser: Browser;
let opened: WatchedPage | undefined;
let server: WeirServer | undefined;
beforeAll(async () => {
  if (optionalToolPath('chromium') === undefined) return;
  browser = await launchBrowser();
});
afterEach(async () => {
  const problems = opened?.problems();
  await opened?.close();
  await server?.stop();
  opened = server = undefined;
  expect(problems ?? []).toEqual([]);
});
afterAll(() => browser?.close());

const open = async (): Promise<Page> => {
  opened = await openPage(browser, `http://127.0.0.1:${server?.debugPort}/`);
  await untilHeard(opened.page);
  return opened.page;
};

describePage('the phase of a single rule', () => {
  test('switches on the page when its time has come', async () => {
    const policy = (phase: string) => `domain: shop
descriptors:
  - key: customer
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: plan
    ${phase}
    rate_limit: { unit: hour, requests_per_unit: 5 }
`;
    server = await startWeir({ policy: policy('phase: monitoring') });
    const page = await open();
    await goTo(page, 'rules');
    const rule = page.locator('.rule', { hasText: 'plan' }).locator('summary').first();
    await rule.locator('.state', { hasText: 'monitoring' }).waitFor();
    const at = new Date(Math.ceil(Date.now() / 1000) * 1000 + 8000).toISOString();
    writeFileSync(server.policyPath ?? '', policy(`phase: { active: ${at} }`));
    await rule.getByText(/denies from \d+ \w+ \d{4}, \d\d:\d\d:\d\d/).waitFor();
    await expect(rule.locator('.state').innerText()).resolves.toMatch(/monitoring/);
    await rule.locator('.state', { hasText: 'active' }).waitFor();
    await expect(rule.innerText()).resolves.not.toContain('denies from');
  });
});
