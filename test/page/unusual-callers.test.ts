/*
 * Tests callers whose names no form field can hold: actions apply to exactly these callers, and not to callers with
 * similar names.
 */
import { describe, expect, test } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { CODE } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { launchBrowser, openPage } from '../support/page/browser.js';
import { goTo, untilConnected } from '../support/page/views.js';
import { descriptor } from '../support/policy/decider.js';
import { optionalToolPath } from '../support/process/tools.js';
import { startWeir } from '../support/weir/weir.js';

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
let browser: Browser | undefined;

const POLICY = `domain: shop
descriptors:
  - key: customer
    rate_limit: { unit: year, requests_per_unit: 2 }
`;
/** A single-line field turns this value into `ab`. */
const BROKEN = 'a\r\nb';

describePage('a value with line ends', () => {
  test('is looked up and filled up unchanged, and the caller that it resembles is not affected', async () => {
    const server = await startWeir({ policy: POLICY });
    const client = new RlsClient(server.grpcPort);
    const take = async (value: string) => {
      const one = descriptor([], { entries: [{ key: 'customer', value }] });
      return (await client.ask('shop', [one])).response?.overallCode;
    };
    for (let each = 0; each < 3; each++) await take(BROKEN);
    browser = await launchBrowser();
    const opened = await openPage(browser, `http://127.0.0.1:${server.debugPort}/`);
    const { page } = opened;
    await untilConnected(page);
    await goTo(page, 'top');
    await page.getByRole('button', { name: /^Show the bucket of customer=a/ }).click();
    await page.locator('#bucket-panel table').waitFor();
    await expect(page.locator('#bucket-panel').innerText()).resolves.toMatch(
      /customer=a\\r\\nb.*customer\s+0\s+2/s,
    );
    await expect(page.locator('#entries').innerText()).resolves.toMatch(
      /customer=a\\r\\nb.*cannot edit the entries/s,
    );
    // The button to refresh sends the same entries.
    const asked = page.waitForRequest((request) => request.url().endsWith('/buckets'));
    await page.getByRole('button', { name: 'Show limits' }).click();
    expect((await asked).postDataJSON()).toMatchObject({ entries: [{ key: 'customer', value: BROKEN }] });
    for (let each = 0; each < 3; each++) await take('ab');
    await page.getByRole('button', { name: 'Fill up…' }).click();
    await page.getByRole('heading', { name: /^Fill up the buckets\?/ }).waitFor();
    await expect(page.locator('#change-body').innerText()).resolves.toContain('customer=a\\r\\nb');
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByRole('heading', { name: /^Done/ }).waitFor();
    expect(await take(BROKEN)).toBe(CODE.OK);
    expect(await take('ab')).toBe(CODE.OVER_LIMIT);
    await page.locator('#change').getByRole('button', { name: 'Close' }).click();
    // Other entries can be typed instead.
    await page.getByRole('button', { name: 'Enter other entries' }).click();
    await page.getByLabel('Entries, one key=value per line').fill('customer=ab');
    await page.getByRole('button', { name: 'Show limits' }).click();
    await page.locator('#bucket-panel', { hasText: 'customer=ab' }).waitFor();
    expect(opened.problems()).toEqual([]);
    await opened.close();
  });
});
