/* Tests every view and every action of the page in a real Chromium: in memory, on Redis, and with two workers. */
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { CODE } from '../../src/codec/messages.js';
import type { PageOptions } from '../support/page/browser.js';
import { PageScene, ShopServer, STORES } from '../support/page/scene.js';
import { goTo, showBucket } from '../support/page/views.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';

// Processes can be slow to start on a busy machine.

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
let scene: PageScene;
beforeAll(async () => {
  if (optionalToolPath('chromium') !== undefined) scene = await PageScene.begin();
});

describePage.each(STORES)('%s', (store) => {
  let shop: ShopServer;
  beforeAll(async () => {
    shop = await ShopServer.start(store, scene.redis);
  });
  afterEach(async () => expect(await scene.close()).toEqual([]));

  const open = (look?: PageOptions): Promise<Page> => scene.open(shop.server.debugPort, look);
  const take = (entries: string) => shop.take(entries);
  /** Confirms the dialog, and closes it. */
  const confirmChange = async (page: Page, done: RegExp) => {
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByRole('heading', { name: done }).waitFor();
    const text = await page.locator('#change-body').innerText();
    await page.locator('#change').getByRole('button', { name: 'Close' }).click();
    return text;
  };

  test('the overview shows the state of the server', async () => {
    const page = await open();
    const tiles = page.locator('#tiles .tile');
    await expect(tiles.nth(0).innerText()).resolves.toMatch(/Health\s+●\s*serving\s+up for/);
    // Workers report their connections a moment later.
    const up = store === 'memory' ? /up\s+memory/ : /1 of 1 server up/;
    await waitFor('the store', async () => up.test(await tiles.nth(1).innerText()));
    await expect(tiles.nth(2).innerText()).resolves.toMatch(/valid\s+1 domain, loaded/);
    await expect(tiles.nth(3).innerText()).resolves.toMatch(
      store.includes('two') ? /2 processes/ : /one process/,
    );
    await expect(page.locator('#policy').innerText()).resolves.toMatch(
      /Version\s+[0-9a-f]{12}\s+Last loaded/,
    );
    await expect(page.locator('#domains').innerText()).resolves.toMatch(/shop\s+●\s*in sync\s+●\s*active/);
    await expect(page.locator('#version').innerText()).resolves.toMatch(/^\d+\.\d+\.\d+/);
    await expect(page.locator('#who').innerText()).resolves.toBe('Local access: read and write');
    await goTo(page, 'replicas');
    const nodes =
      store === 'memory'
        ? /With the memory store, each replica/
        : new RegExp(`${scene.redis.port}.*up.* ms`, 's');
    await waitFor('the store', async () => nodes.test(await page.locator('#store').innerText()));
    const workers = page.locator('#workers tbody tr');
    await expect(workers.count()).resolves.toBe(store.includes('two') ? 2 : 0);
  });

  // One process on Redis differs from the other two servers only on the overview.
  if (store === 'Redis') return;

  test('charts show what was allowed, denied, and would have been denied', async () => {
    const page = await open();
    // A step of the history lasts five seconds.
    await page.locator('#worst table').waitFor();
    await expect(page.locator('#worst').innerText()).resolves.toMatch(/customer\s+shop\s+3\s+3\s+0\s/);
    // The denials began before the page was opened, and less than a minute ago.
    await page.locator('#worst td[data-heading="Denials began"] time').first().waitFor();
    await page.getByText('Show as table').first().click();
    await page.locator('#traffic table tbody tr').first().waitFor();
    await expect(page.locator('#traffic .plot').first().getAttribute('role')).resolves.toBe('img');
    const drawn = await page.evaluate(`[...document.querySelectorAll('#traffic canvas')].map((canvas) =>
  canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0))`);
    expect(drawn).toEqual([true, true, true, true]);
    await expect(page.locator('#no-traffic').innerText()).resolves.toBe('');
    // The axis begins at the start of the server, about a minute ago.
    const axis = page.locator('#traffic .axis').first();
    await expect(axis.innerText()).resolves.toMatch(/^\d\d:\d\d, [1-9] min( \d+ s)? ago\s+now, \d\d:\d\d$/);
    const range = page.locator('#view-overview .choice').getByRole('radio');
    await expect(page.getByLabel('since start').first().isChecked()).resolves.toBe(true);
    await range.last().focus();
    await page.keyboard.press('ArrowLeft');
    await expect(axis.innerText()).resolves.toMatch(/^\d\d:\d\d, 1 h ago/);
    expect(new URL(page.url()).search).toBe('?range=1h');
    await page.locator('#view-overview .choice').getByLabel('5 min', { exact: true }).check();
    await page.reload();
    await page.locator('#worst table').waitFor();
    await expect(axis.innerText()).resolves.toMatch(/^\d\d:\d\d, 5 min ago/);
    // All charts have the same axis.
    await goTo(page, 'rules');
    await page.locator('.rule summary').first().click();
    await expect(
      page.locator('#view-rules .choice').getByLabel('5 min', { exact: true }).isChecked(),
    ).resolves.toBe(true);
    const ofRule = page.locator('.rule .axis').first();
    await waitFor('the chart', async () => / 5 min ago/.test((await ofRule.innerText()) ?? ''));
    await page.locator('#view-rules .choice').getByLabel('15 min', { exact: true }).check();
    await waitFor('the other range', async () => / 15 min ago/.test((await ofRule.innerText()) ?? ''));
    expect(new URL(page.url()).href).toMatch(/\/\?range=15m#rules$/);
  });

  test('rules have limits, phases, schedules and counts, and open to show their charts', async () => {
    const page = await open();
    await goTo(page, 'rules');
    const rule = page.locator('.rule summary').first();
    await expect(rule.innerText()).resolves.toMatch(
      /customer\s+per-customer\s+token bucket: 5 tokens, 1 every 1000h/,
    );
    await waitFor('counts', async () =>
      /denied: 3 in the last minute, .*3 in the last hour/.test((await rule.textContent()) ?? ''),
    );
    const scheduled = page.locator('.rule', { hasText: 'endpoint=export' });
    await expect(scheduled.innerText()).resolves.toMatch(
      /grace period\s*denies from 2126-12-01 00:00:00 UTC, in [\d,]+ days/,
    );
    await scheduled.locator('summary').first().click();
    await scheduled.getByText('Active from 2126-12-01 00:00:00 UTC.').waitFor();
    await scheduled.locator('.chart').first().waitFor();
    await expect(page.locator('.rule', { hasText: 'shadow' }).last().innerText()).resolves.toMatch(
      /shadow mode/,
    );
    await page.getByLabel('Filter by path or name').fill('EXPORT');
    await page.getByText('1 rule found').waitFor();
    await page.getByLabel('Filter by path or name').fill('');
    await page.getByText('3 rules', { exact: true }).waitFor();
  });

  test('the Top view links to the bucket', async () => {
    const page = await open();
    await goTo(page, 'top');
    const row = page.locator('#top-rows tbody tr').first();
    await expect(row.innerText()).resolves.toMatch(/customer=mallory\s+3\s+5\s+100%\s+customer\s+shop/);
    await page.getByLabel('Sort by').selectOption('used');
    await page.getByText('Most used buckets in the last minute').waitFor();
    await page.getByLabel('In the last').selectOption('hour');
    await page.getByText('Most used buckets in the last hour').waitFor();
    await page.getByRole('button', { name: 'Show the bucket of customer=mallory', exact: true }).click();
    await expect(page.locator('#bucket-panel table').innerText()).resolves.toMatch(
      /customer\s+per-customer\s+0\s+5/,
    );
    expect(new URL(page.url()).hash).toBe('#bucket');
  });

  test('a bucket is filled and granted tokens, each after a dry run', async () => {
    const who = 'customer=helped';
    for (let each = 0; each < 5; each++) await take(who);
    const page = await open();
    await showBucket(page, 'shop', { customer: 'helped' });
    await page.getByLabel('Tokens').fill('2');
    await page.getByRole('button', { name: 'Grant…' }).click();
    await page.getByRole('heading', { name: 'Grant 2 tokens?' }).waitFor();
    await expect(page.locator('#change-body').innerText()).resolves.toMatch(
      /Nothing has changed yet.*0.*→.*2/s,
    );
    expect(await take(who)).toBe(CODE.OVER_LIMIT);
    // Escape cancels, and returns the focus to the button.
    await page.keyboard.press('Escape');
    await waitFor('the dialog to close', async () => !(await page.locator('#change').isVisible()));
    await expect(page.evaluate('document.activeElement.id')).resolves.toBe('grant-button');
    expect(await take(who)).toBe(CODE.OVER_LIMIT);
    await page.getByRole('button', { name: 'Grant…' }).click();
    await confirmChange(page, /^Done: grant 2 tokens/);
    await waitFor('two calls', async () => (await take(who)) === CODE.OK);
    await page.getByRole('button', { name: 'Fill up…' }).click();
    expect(await confirmChange(page, /^Done: fill up the buckets/)).toMatch(/→\s*5/);
    await waitFor('the counts', async () =>
      /per-customer\s+5\s+5/.test(await page.locator('#bucket-panel table').innerText()),
    );
  });

  test('an action that the server refuses is reported in full, and changes nothing', async () => {
    const page = await open();
    await showBucket(page, 'shop', { customer: 'helped' });
    scene.expectLoss();
    await page.getByLabel('Tokens').fill(String(2 ** 53));
    await page.getByRole('button', { name: 'Grant…' }).click();
    await page.getByRole('heading', { name: /not possible/ }).waitFor();
    await expect(page.locator('#change-body').innerText()).resolves.toMatch(/whole number/);
    await expect(page.getByRole('button', { name: 'Confirm' }).count()).resolves.toBe(0);
    await page.keyboard.press('Escape');
    await showBucket(page, 'shop', { nobody: 'x' });
    await page.locator('#bucket-panel', { hasText: 'No limit matches these entries' }).waitFor();
  });
});
