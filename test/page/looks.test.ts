/*
 * Tests each view in light and dark, on a desktop and a phone: axe-core finds no fault, and nothing is wider than the
 * screen.
 */
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { axeViolations, overflow } from '../support/page/browser.js';
import { PageScene, ShopServer, type StoreName } from '../support/page/scene.js';
import { goTo, showBucket, VIEW_NAMES } from '../support/page/views.js';
import { optionalToolPath } from '../support/process/tools.js';

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
let scene: PageScene;
let shop: ShopServer;
beforeAll(async () => {
  if (optionalToolPath('chromium') !== undefined) scene = await PageScene.begin();
});
afterEach(async () => expect((await scene?.close()) ?? []).toEqual([]));

async function start(store: StoreName): Promise<void> {
  shop = await ShopServer.start(store, scene.redis);
}

describePage('with buckets in memory', () => {
  beforeAll(() => start('memory'));

  test('with forced colours, only the link of the current view is underlined', async () => {
    const page = await scene.open(shop.server.debugPort);
    await page.emulateMedia({ forcedColors: 'active' });
    await goTo(page, 'rules');
    const lines = (await page.evaluate(`[...document.querySelectorAll('nav a')].map((link) => {
  const ground = getComputedStyle(document.querySelector('nav')).backgroundColor;
  return getComputedStyle(link).borderBottomColor !== ground ? link.hash : '';
})`)) as readonly string[];
    expect(lines).toEqual(['', '#rules', '', '', '', '']);
  });

  test('a title has no focus ring if the address selected the view, and has one for keyboard users', async () => {
    const page = await scene.open(shop.server.debugPort);
    const style = (name: string) =>
      page.evaluate(`getComputedStyle(document.getElementById('title-${name}')).outlineStyle`);
    for (const name of ['rules', 'top'] as const) {
      await page.goto(new URL(`#${name}`, page.url()).href);
      await page.locator(`#title-${name}:focus`).waitFor();
      expect([name, await style(name)]).toEqual([name, 'none']);
      await page.reload();
      await page.locator(`#view-${name}:visible`).waitFor();
      expect([name, await style(name)]).toEqual([name, 'none']);
    }
    await page.locator('nav a[href="#rules"]').press('Enter');
    await page.locator('#title-rules:focus').waitFor();
    expect(await style('rules')).toBe('solid');
  });

  test('the counts of all rules are aligned', async () => {
    const page = await scene.open(shop.server.debugPort);
    await goTo(page, 'rules');
    await page.locator('.rule .of-hour').first().waitFor();
    const edges = (await page.evaluate(`[...document.querySelectorAll('.sums')].map((sums) =>
  [...sums.querySelectorAll('.of-minute, .of-hour')].map((part) => {
    const { right } = part.getBoundingClientRect();
    return Math.round(right) + getComputedStyle(part).textAlign;
  }).join(' ')).filter((text) => text !== '')`)) as readonly string[];
    expect(new Set(edges).size).toBe(1);
    expect(edges.length).toBeGreaterThan(1);
    expect(edges[0]).toMatch(/^(\d+right ?){6}$/);
  });

  test('on a phone, the Top view shows ten rows first, each with the value that it is sorted by', async () => {
    for (let at = 0; at < 15; at++) await shop.take(`customer=c${at}`);
    const page = await scene.open(shop.server.debugPort, { width: 'phone' });
    await goTo(page, 'top');
    await page.getByRole('button', { name: /^Show all 1\d$/ }).waitFor();
    const rows = page.locator('#top-rows tbody tr');
    await expect(rows.count()).resolves.toBe(10);
    await expect(rows.first().innerText()).resolves.toMatch(/customer=mallory\s+3\s+5\s/);
    await page.getByRole('button', { name: /^Show all/ }).click();
    expect(await rows.count()).toBeGreaterThanOrEqual(15);
  });
});

// Two workers on Redis show everything that memory shows, except for the text about the store on the overview.
describePage.each([
  ['memory', ['overview']],
  ['Redis with two workers', VIEW_NAMES],
] as const)('%s', (store, views) => {
  beforeAll(() => start(store));

  describe.each([
    { width: 'desk', scheme: 'light' },
    { width: 'desk', scheme: 'dark' },
    { width: 'phone', scheme: 'light' },
    { width: 'phone', scheme: 'dark' },
  ] as const)('$width, $scheme', (look) => {
    test('the views pass axe-core, and none is wider than the screen', async () => {
      const page = await scene.open(shop.server.debugPort, look);
      const findings: string[] = [];
      const checkAccessibility = async (what: string) => {
        findings.push(...(await axeViolations(page)).map((finding) => `${what}: ${finding}`));
        expect([what, await overflow(page)]).toEqual([what, 0]);
      };
      for (const view of views) {
        await goTo(page, view);
        if (view === 'rules') {
          await page.locator('.rule summary').first().click();
          await page.locator('.rule .chart').first().waitFor();
        }
        if (view === 'bucket') await showBucket(page, 'shop', { customer: 'mallory' });
        await checkAccessibility(view);
      }
      if (store !== 'memory') {
        await goTo(page, 'bucket');
        await page.getByRole('button', { name: 'Grant…' }).click();
        await page.getByRole('button', { name: 'Confirm' }).waitFor();
        await checkAccessibility('dialog');
      }
      expect(findings).toEqual([]);
    });
  });
});
