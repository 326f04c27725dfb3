/* Tests how the page follows a server: not while its tab is hidden, and despite answers that it does not understand. */
import { writeFileSync } from 'node:fs';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { newAdminToken } from '../../src/admin/admin-tokens.js';
import { axeViolations, launchBrowser, openPage, type WatchedPage } from '../support/page/browser.js';
import { Relay } from '../support/page/relay.js';
import { goTo, untilConnected } from '../support/page/views.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `domain: shop
descriptors:
  - key: customer
    rate_limit: { unit: hour, requests_per_unit: 5 }
`;
const writer = newAdminToken('on-call', 'write');

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
const folder = new TempDir();
let browser: Browser;
let server: WeirServer;
let opened: WatchedPage | undefined;
let relay: Relay | undefined;
beforeAll(async () => {
  if (optionalToolPath('chromium') === undefined) return;
  const tokens = folder.write('tokens', `${writer.line}\n`);
  [browser, server] = await Promise.all([
    launchBrowser(),
    startWeir({ policy: POLICY, env: { ADMIN_TOKENS_FILE: tokens } }),
  ]);
});
afterEach(async () => {
  await opened?.close();
  opened = relay = undefined;
});

const enter = async (page: Page) => {
  await page.getByLabel('Token', { exact: true }).fill(writer.token);
  await page.getByRole('button', { name: 'Use this token' }).click();
};
/** Opens the page, through the relay if there is one. */
const open = async (port: number): Promise<Page> => {
  opened = await openPage(browser, `http://127.0.0.1:${port}/`, { movesClock: true });
  opened.expectLoss();
  return opened.page;
};
/** Makes the page believe that its tab is hidden or visible. */
const setHidden = (page: Page, hidden: boolean) =>
  page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${hidden} });
Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${hidden ? 'hidden' : 'visible'}' });
document.dispatchEvent(new Event('visibilitychange'));`);

describePage('a hidden tab', () => {
  test('holds no connection, and shows new data as soon as it is visible', async () => {
    const page = await open(server.debugPort);
    const asked = new Set<unknown>();
    page.on('request', (request) => asked.add(request));
    for (const end of ['requestfinished', 'requestfailed'] as const) {
      page.on(end as 'requestfinished', (request) => asked.delete(request));
    }
    await enter(page);
    await untilConnected(page);
    await waitFor('the stream alone', async () => asked.size === 1);
    await setHidden(page, true);
    await untilConnected(page, 'paused');
    await waitFor('no request', async () => asked.size === 0);
    const isNew = async () => (await page.locator('#domains').innerText()).includes('bazaar');
    writeFileSync(server.policyPath ?? '', POLICY.replace('shop', 'bazaar'));
    expect(await isNew()).toBe(false);
    await setHidden(page, false);
    await untilConnected(page);
    await waitFor('the new domain', isNew);
    await expect(page.locator('#banner').innerText()).resolves.toBe('');
    expect(opened?.problems()).toEqual([]);
  });

  test('keeps its connection if it is hidden only briefly', async () => {
    const page = await open(server.debugPort);
    await enter(page);
    await untilConnected(page);
    const uptime = (): Promise<string> => page.locator('#uptime').innerText();
    const before = await uptime();
    let [streams, histories] = [0, 0];
    page.on('request', (request) => {
      if (request.url().endsWith('/overview')) streams++;
      if (request.url().endsWith('/history')) histories++;
    });
    await setHidden(page, true);
    await setHidden(page, false);
    // Once when the tab becomes visible, and then with the next steps of the stream.
    await waitFor('two more steps', () => histories >= 3 || undefined);
    expect(streams).toBe(0);
    // Only the uptime has changed, and it keeps counting.
    expect(before).toMatch(/^up for \d/);
    expect(await uptime()).not.toBe(before);
    expect(opened?.problems()).toEqual([]);
  });
});

describePage('a server of another version', () => {
  test('is reported, with a button that reloads the page', async () => {
    relay = await Relay.start(server.debugPort);
    relay.rewrite = (path, piece) =>
      path === '/overview' ? piece.replace(/"version":"\d[^"]*"/, '"version":"0.0.1"') : piece;
    const page = await open(relay.port);
    await enter(page);
    await untilConnected(page);
    await expect(page.locator('#version').innerText()).resolves.toBe('0.0.1');
    await expect(page.locator('#banner').innerText()).resolves.toBe('');
    relay.rewrite = (_path, piece) => piece;
    await page.locator('#reload').click();
    await page.getByText(/weir now runs version \d+\.\d+\.\d+.*\. Reload this page\./).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Reload the page' }).click();
    await enter(page);
    await untilConnected(page);
    await expect(page.locator('#banner').innerText()).resolves.toBe('');
    expect(opened?.problems()).toEqual([]);
  });

  test('is reported once and not polled again if the page does not understand its overview', async () => {
    relay = await Relay.start(server.debugPort);
    let [points, streams] = [0, 0];
    relay.rewrite = (path, piece) => {
      if (path !== '/overview') return piece;
      points += piece.split('event: point').length - 1;
      return piece.replaceAll('"policy":', '"rulebook":');
    };
    const page = await open(relay.port);
    page.on('request', (request) => {
      if (request.url().endsWith('/overview')) streams++;
    });
    await enter(page);
    await page.getByText(/This page cannot read weir's answers. Another version/).waitFor();
    await waitFor('two points', async () => points >= 2);
    expect(streams).toBe(1);
    await page.getByText(/This page cannot read weir's answers. Another version/).waitFor();
    expect(opened?.problems().map((problem) => problem.slice(0, 16))).toEqual(['error: Error: th']);
    await expect(page.getByRole('button', { name: 'Reload the page' }).isVisible()).resolves.toBe(true);
  });

  test('leaves the rest of the page unchanged if the page does not understand history and top', async () => {
    relay = await Relay.start(server.debugPort);
    relay.rewrite = (path, piece) =>
      path === '/history' || path === '/top'
        ? piece.replace('"ends":', '"until":').replace('"covers"', '"spans"')
        : piece;
    const page = await open(relay.port);
    await enter(page);
    await untilConnected(page);
    await page.getByText('The rates could not be loaded:').first().waitFor();
    await page
      .getByText(/This page cannot read weir's answer\./)
      .first()
      .waitFor();
    await goTo(page, 'top');
    await page.locator('#top-failed', { hasText: "cannot read weir's answer" }).waitFor();
    await untilConnected(page);
    expect(opened?.problems()).toEqual([]);
  });
});

describePage('a silent stream', () => {
  test.each([
    ['that says nothing', ''],
    ['that a proxy keeps open with comments', ': still here\n\n'],
  ])('%s counts as lost after little more than two steps of the history', async (_, piece) => {
    relay = await Relay.start(server.debugPort);
    const page = await open(relay.port);
    await enter(page);
    await untilConnected(page);
    relay.rewrite = (path, real) => (path === '/overview' ? piece : real);
    await page.clock.runFor(13_000);
    await untilConnected(page, 'no answer');
    expect(opened?.problems()).toEqual([]);
    // The click happens before data arrives, or the page could recover by itself first.
    await page.getByRole('button', { name: 'Retry now' }).click();
    relay.rewrite = (_path, real) => real;
    await untilConnected(page);
  });
});
