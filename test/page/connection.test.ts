/*
 * Tests how the page reaches a server: it loses and finds it again, uses tokens, and works below a prefix and behind
 * proxies that buffer streams.
 */
import { writeFileSync } from 'node:fs';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { newAdminToken } from '../../src/admin/admin-tokens.js';
import { axeViolations, launchBrowser, openPage, type WatchedPage } from '../support/page/browser.js';
import { Relay } from '../support/page/relay.js';
import { goTo, showBucket, untilConnected } from '../support/page/views.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `domain: shop
descriptors:
  - key: customer
    rate_limit: { unit: hour, requests_per_unit: 5 }
`;
const reader = newAdminToken('dashboard', 'read');
const writer = newAdminToken('on-call', 'write');

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
const folder = new TempDir();
let browser: Browser;
let guarded: WeirServer;
let opened: WatchedPage | undefined;
let relay: Relay | undefined;
beforeAll(async () => {
  if (optionalToolPath('chromium') === undefined) return;
  const tokens = folder.write('tokens', `${reader.line}\n${writer.line}\n`);
  [browser, guarded] = await Promise.all([
    launchBrowser(),
    startWeir({ policy: POLICY, env: { ADMIN_TOKENS_FILE: tokens } }),
  ]);
});
afterEach(async () => {
  const problems = opened?.problems();
  await opened?.close();
  opened = relay = undefined;
  expect(problems ?? []).toEqual([]);
});

const open = async (port: number, path = '/'): Promise<Page> => {
  opened = await openPage(browser, `http://127.0.0.1:${port}${path}`, { movesClock: true });
  return opened.page;
};
const enter = async (page: Page, token: string, keep = false) => {
  await page.getByLabel('Token', { exact: true }).fill(token);
  if (keep) await page.getByLabel(/keep the token until/).check();
  await page.getByRole('button', { name: 'Use this token' }).click();
};
const untilLive = (page: Page) => untilConnected(page);

describePage('an unavailable server', () => {
  test('is reported, the last data stays, and the page reconnects by itself and shows new data', async () => {
    let server = await startWeir({ policy: POLICY });
    const { grpcPort, httpPort, debugPort } = server;
    const page = await open(debugPort);
    await untilLive(page);
    opened?.expectLoss();
    await server.stop('SIGKILL');
    await page.getByText(/weir has not answered since \d\d:\d\d:\d\d\./).waitFor();
    await expect(page.locator('#domains').innerText()).resolves.toContain('shop');
    await untilConnected(page, 'no answer');
    expect(await axeViolations(page)).toEqual([]);
    // An action in the meantime reports that its result is not known.
    await goTo(page, 'top');
    await expect(page.locator('#top-failed').innerText()).resolves.toBe('weir did not answer.');
    const more = POLICY.replace('domain: shop', 'domain: bazaar');
    server = await startWeir({ policy: more, ports: { grpcPort, httpPort, debugPort } });
    await untilLive(page);
    await waitFor('no banner', async () => (await page.locator('#banner').innerText()) === '');
    await goTo(page, 'overview');
    await waitFor('the new policy', async () =>
      (await page.locator('#domains').innerText()).includes('bazaar'),
    );
    await goTo(page, 'rules');
    await page.getByRole('heading', { name: 'bazaar' }).waitFor();
  });

  test('is asked again at once by a button', async () => {
    const server = await startWeir({ policy: POLICY });
    const { grpcPort, httpPort, debugPort } = server;
    const page = await open(debugPort);
    await untilLive(page);
    opened?.expectLoss();
    await server.stop('SIGKILL');
    await waitFor('a long pause', async () => {
      await page.clock.runFor(500);
      return page.getByText(/Next attempt in [5-9] s/).isVisible();
    });
    await startWeir({ policy: POLICY, ports: { grpcPort, httpPort, debugPort } });
    await page.getByRole('button', { name: 'Retry now' }).click();
    await untilLive(page);
  });
});

describePage('tokens', () => {
  test('are requested, kept in memory only, and the page shows their rights', async () => {
    const page = await open(guarded.debugPort);
    opened?.expectLoss();
    await page
      .getByText(/This server requires a token/)
      .first()
      .waitFor();
    expect(await axeViolations(page)).toEqual([]);
    // The page does not send characters that no header can hold, such as the ellipsis of a shortened copy.
    await enter(page, `${reader.token.slice(0, 5)}…`, true);
    await page.getByText(/A token can contain only ASCII/).waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    await page.getByLabel(/keep the token until/).uncheck();
    await enter(page, 'weir_wrong-but-long-enough-to-be-a-token-000000');
    await page.getByText('ADMIN_TOKENS_FILE does not contain this token.').first().waitFor();
    await enter(page, reader.token);
    await untilLive(page);
    await page.getByText('Token dashboard: read only').waitFor();
    await showBucket(page, 'shop', { customer: 'acme' });
    await expect(
      page
        .getByText(/The token dashboard has only read permission/)
        .first()
        .isVisible(),
    ).resolves.toBe(true);
    await expect(page.getByRole('button', { name: 'Fill up…' }).isDisabled()).resolves.toBe(true);
    expect(page.url()).not.toContain(reader.token);
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage, ...localStorage })')).toBe('{}');
    await page.reload();
    await page
      .getByText(/This server requires a token/)
      .first()
      .waitFor();
  });

  test('are required before a view says anything about requests', async () => {
    const page = await open(guarded.debugPort);
    opened?.expectLoss();
    await page.getByRole('button', { name: 'Cancel' }).click();
    for (const name of ['overview', 'rules', 'plans', 'replicas']) {
      await page.locator(`nav a[href="#${name}"]`).click();
      await page.locator(`#view-${name}`).getByText('This page has no data yet.').waitFor();
      expect([name, await page.locator('main p').count()]).toEqual([name, 1]);
    }
  });

  test('are kept for a tab if the user wants that, changed, and forgotten', async () => {
    const page = await open(guarded.debugPort);
    opened?.expectLoss();
    await page
      .getByText(/This server requires a token/)
      .first()
      .waitFor();
    await enter(page, reader.token, true);
    await untilLive(page);
    await page.reload();
    await page.getByText('Token dashboard: read only').waitFor();
    await page.getByRole('button', { name: 'Change token' }).click();
    await enter(page, writer.token);
    await page.getByText('Token on-call: read and write').waitFor();
    await page.getByRole('button', { name: 'Forget token' }).click();
    await page
      .getByText(/This server requires a token/)
      .first()
      .waitFor();
    await page.keyboard.press('Escape');
    // A button opens a closed dialog again.
    await page.getByRole('button', { name: 'Enter a token' }).click();
    await enter(page, writer.token);
    await untilLive(page);
    await page.reload();
    await page
      .getByText(/This server requires a token/)
      .first()
      .waitFor();
  });

  test('can be typed slowly, and are not requested again after Cancel', async () => {
    const page = await open(guarded.debugPort, '/#top');
    opened?.expectLoss();
    const input = page.getByLabel('Token', { exact: true });
    await input.waitFor();
    let asked = 0;
    page.on('request', (request) => {
      if (/\/top$/.test(request.url())) asked++;
    });
    // Longer than two polling intervals of the view.
    for (let typed = 0; typed < 20; typed++) {
      await input.pressSequentially('t');
      await page.clock.runFor(600);
    }
    await expect(input.inputValue()).resolves.toBe('t'.repeat(20));
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.evaluate(`globalThis.opened = 0;
new MutationObserver(() => globalThis.opened++).observe(document.getElementById('token'), { attributes: true });`);
    // Two more polling intervals.
    await page.clock.runFor(12_000);
    expect([await page.evaluate('globalThis.opened'), asked]).toEqual([0, 0]);
    await expect(page.locator('#top-failed').innerText()).resolves.toMatch(/This server requires a token/);
    await page.locator('#reload').click();
    await enter(page, writer.token);
    await untilLive(page);
    await waitFor('an answer', async () => (await page.locator('#top-failed').innerText()) === '');
  });

  test('that are entered again bring back the remaining hits of a caller', async () => {
    const page = await open(guarded.debugPort);
    opened?.expectLoss();
    await enter(page, writer.token);
    await untilLive(page);
    await page.route('**/buckets', (route) =>
      route.fulfill({ status: 401, json: { error: 'no such token' } }),
    );
    await showBucket(page, 'shop', { customer: 'acme' });
    await page.locator('#bucket-panel', { hasText: 'no such token' }).waitFor();
    await page.unroute('**/buckets');
    await enter(page, writer.token);
    await page.locator('#bucket-panel table').waitFor();
    await expect(page.locator('#bucket-actions').isVisible()).resolves.toBe(true);
  });

  test('that are revoked end the views that they allowed', async () => {
    const path = folder.write('taken', `${writer.line}\n`);
    const server = await startWeir({ policy: POLICY, env: { ADMIN_TOKENS_FILE: path } });
    const page = await open(server.debugPort);
    opened?.expectLoss();
    await enter(page, writer.token);
    await untilLive(page);
    writeFileSync(path, `${reader.line}\n`);
    await goTo(page, 'top');
    await waitFor('the refusal', async () => {
      await page
        .locator('#reload')
        .click({ force: true, timeout: 1000 })
        .catch(() => undefined);
      return page.getByText('ADMIN_TOKENS_FILE does not contain this token.').first().isVisible();
    });
  });
});

describePage('behind proxies', () => {
  test('works below a prefix', async () => {
    relay = await Relay.start(guarded.debugPort, { prefix: '/ops/weir' });
    const page = await open(relay.port, '/ops/weir/');
    opened?.expectLoss();
    await enter(page, writer.token);
    await untilLive(page);
    await showBucket(page, 'shop', { customer: 'acme' });
    await expect(page.locator('#bucket-panel').innerText()).resolves.toMatch(/customer[^a-z]+5\s+5/);
    await page.goto(`http://127.0.0.1:${relay.port}/ops/weir`);
    await enter(page, writer.token);
    await untilLive(page);
  });

  test('is refused without tokens, and the page gives the full reason', async () => {
    const server = await startWeir({ policy: POLICY });
    relay = await Relay.start(server.debugPort);
    const page = await open(relay.port);
    opened?.expectLoss();
    await page.getByText('weir refused the request:').waitFor();
    await expect(page.locator('#banner').innerText()).resolves.toMatch(
      /came through a proxy.*ADMIN_TOKENS_FILE/,
    );
  });

  test('polls repeatedly if the proxy buffers the stream', async () => {
    relay = await Relay.start(guarded.debugPort, { buffersAnswers: true });
    const page = await open(relay.port);
    opened?.expectLoss();
    await enter(page, writer.token);
    // As long as a stream can be silent at first.
    await page.clock.runFor(10_000);
    await untilConnected(page, 'polling every 5 s');
    await expect(page.locator('#domains').innerText()).resolves.toContain('shop');
    const before = await page.locator('#uptime').innerText();
    await waitFor('the next answer', async () => {
      await page.clock.runFor(5000);
      return (await page.locator('#uptime').innerText()) !== before;
    });
    // The page tries a stream again meanwhile, so that a stall ends.
    relay.buffersAnswers = false;
    await waitFor('a stream', async () => {
      await page.clock.runFor(1000);
      return (await page.locator('#connection').innerText()).includes('live');
    });
  });
});
