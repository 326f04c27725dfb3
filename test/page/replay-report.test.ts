/* Tests the report of `weir replay --html` as a file in a browser, in light and dark, on a desktop and a phone. */
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { htmlReport } from '../../src/replay/report/html/html-report.js';
import type { ReplayReport } from '../../src/replay/report/report.js';
import {
  axeViolations,
  launchBrowser,
  openPage,
  overflow,
  type PageOptions,
  type WatchedPage,
} from '../support/page/browser.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath } from '../support/process/tools.js';
import { group, interval, rule, sampleReport, useSteps } from '../support/replay/sample-report.js';

jest.setTimeout(90_000);

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;

/** Returns how many pixels of each canvas have a color. */
const DRAWN = `[...document.querySelectorAll('canvas')].map((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 3; at < data.length; at += 4) if (data[at] > 0) count++;
  return [canvas.id, count];
})`;

describePage('the report', () => {
  let browser: Browser;
  let folder: TempDir;
  let opened: WatchedPage | undefined;

  beforeAll(async () => {
    browser = await launchBrowser();
    folder = new TempDir();
  });
  afterAll(async () => {
    await browser?.close();
    folder?.remove();
  });
  afterEach(async () => {
    const problems = opened?.problems() ?? [];
    await opened?.close();
    opened = undefined;
    expect(problems).toEqual([]);
  });

  async function open(report: ReplayReport, look: PageOptions = {}): Promise<Page> {
    const path = folder.write('report.html', htmlReport(report));
    opened = await openPage(browser, pathToFileURL(path).href, look);
    return opened.page;
  }

  async function drawn(page: Page): Promise<Readonly<Record<string, number>>> {
    return Object.fromEntries((await page.evaluate(DRAWN)) as [string, number][]);
  }

  describe.each([
    { width: 'desk', scheme: 'light' },
    { width: 'desk', scheme: 'dark' },
    { width: 'phone', scheme: 'light' },
    { width: 'phone', scheme: 'dark' },
  ] as const)('$width, $scheme', (look) => {
    test('draws every chart, fits the screen, and is accessible', async () => {
      const page = await open(sampleReport(), look);
      await expect(page.locator('h1').innerText()).resolves.toBe('12 of 240 tenants would lose requests.');
      const pixels = await drawn(page);
      expect(Object.keys(pixels)).toEqual(['denials', 'affected', 'use-0', 'use-1']);
      for (const count of Object.values(pixels)) expect(count).toBeGreaterThan(1000);
      for (const summary of await page.locator('summary').all()) await summary.click();
      await expect(overflow(page)).resolves.toBe(0);
      await expect(axeViolations(page)).resolves.toEqual([]);
    });
  });

  test('the charts follow a change between light and dark', async () => {
    const page = await open(sampleReport());
    const image = () => page.evaluate("document.getElementById('use-0').toDataURL()");
    const light = await image();
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.waitForFunction("matchMedia('(prefers-color-scheme: dark)').matches");
    expect(await image()).not.toBe(light);
  });

  test('a point of a chart shows its time and numbers', async () => {
    const page = await open(sampleReport());
    const image = "document.getElementById('denials').toDataURL()";
    await page.evaluate(`before = ${image}`);
    const { width = 0, height = 0 } = (await page.locator('#denials').boundingBox()) ?? {};
    await page.locator('#denials').hover({ position: { x: width / 2, y: height / 2 } });
    await page.waitForFunction(`${image} !== before`);
  });

  test.each(['desk', 'phone'] as const)('hostile names do not break the page on a %s', async (width) => {
    const names = [
      '</script><script>alert(1)</script>',
      '\u202eevil\u2066\u05d0',
      'n'.repeat(10_000),
      '<img src=x>',
    ];
    const shown = names.map((name) => group(name, 10, interval(1), { deniedSteps: [0, 700] }));
    const rules = names.map((name) => rule({ rule: name, domain: name, limit: name, use: useSteps([3]) }));
    const groups = { by: names[3] ?? '', count: 4, affected: interval(4), shown };
    const page = await open(sampleReport({ groups, rules, notes: names }), { width });
    page.on('dialog', () => expect('a dialog').toBe('none'));
    await expect(page.locator('main img, main script').count()).resolves.toBe(0);
    expect(await page.evaluate('document.body.innerText')).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    await expect(overflow(page)).resolves.toBe(0);
    expect(Object.keys(await drawn(page))).toEqual([
      'denials',
      'affected',
      'use-0',
      'use-1',
      'use-2',
      'use-3',
    ]);
  });
});
