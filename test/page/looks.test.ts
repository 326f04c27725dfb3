/* Each view, in light and dark, on a desk and on a phone: nothing that axe-core finds, nothing beyond the screen. */
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { axeViolations, overflow } from '../support/page/browser.js';
import { PageScene, ShopServer, STORES } from '../support/page/scene.js';
import { goTo, showBucket, VIEW_NAMES } from '../support/page/views.js';
import { optionalToolPath } from '../support/process/tools.js';

jest.setTimeout(90_000);

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
let scene: PageScene;

describePage.each(STORES)('%s', (store) => {
  let shop: ShopServer;
  beforeAll(async () => {
    scene ??= await PageScene.begin();
    shop = await ShopServer.start(store, scene.redis);
  });
  afterEach(async () => expect(await scene.close()).toEqual([]));
  afterAll(() => shop?.stop());

  test('with the colours of the system only the link of the view that is seen has a line', async () => {
    const page = await scene.open(shop.server.debugPort);
    await page.emulateMedia({ forcedColors: 'active' });
    await goTo(page, 'rules');
    const lines = (await page.evaluate(`[...document.querySelectorAll('nav a')].map((link) => {
  const ground = getComputedStyle(document.querySelector('nav')).backgroundColor;
  return getComputedStyle(link).borderBottomColor !== ground ? link.hash : '';
})`)) as readonly string[];
    expect(lines).toEqual(['', '#rules', '', '', '']);
  });

  describe.each([
    { width: 'desk', scheme: 'light' },
    { width: 'desk', scheme: 'dark' },
    { width: 'phone', scheme: 'light' },
    { width: 'phone', scheme: 'dark' },
  ] as const)('$width, $scheme', (look) => {
    test('every view is without a finding of axe-core, and none is wider than the screen', async () => {
      const page = await scene.open(shop.server.debugPort, look);
      const findings: string[] = [];
      const lookAt = async (what: string) => {
        findings.push(...(await axeViolations(page)).map((finding) => `${what}: ${finding}`));
        expect([what, await overflow(page)]).toEqual([what, 0]);
      };
      for (const view of VIEW_NAMES) {
        await goTo(page, view);
        if (view === 'rules') {
          await page.locator('.rule summary').first().click();
          await page.locator('.rule .chart').first().waitFor();
        }
        if (view === 'bucket') await showBucket(page, 'shop', { customer: 'mallory' });
        await lookAt(view);
      }
      await goTo(page, 'bucket');
      await page.getByRole('button', { name: 'Grant…' }).click();
      await page.getByRole('button', { name: 'Do it' }).waitFor();
      await lookAt('dialog');
      expect(findings).toEqual([]);
    });
  });
});

afterAll(() => scene?.end());
