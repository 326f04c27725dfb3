/* Tests that the dialog of a change reports the result of the right change, also for late and malformed answers. */
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page, Route } from 'playwright-core';
import type { BucketQuestion } from '../../src/admin/buckets/messages.js';
import { PageScene, ShopServer } from '../support/page/scene.js';
import { goTo, showBucket } from '../support/page/views.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
let scene: PageScene;
let shop: ShopServer;
beforeAll(async () => {
  if (optionalToolPath('chromium') === undefined) return;
  scene = await PageScene.begin();
  shop = await ShopServer.start('memory', scene.redis);
});
afterEach(async () => expect((await scene?.close()) ?? []).toEqual([]));

const open = () => scene.open(shop.server.debugPort);
const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true });
const dialogTitle = (page: Page) => page.locator('#change-title').innerText();
const untilClosed = (page: Page) =>
  waitFor('the dialog to close', async () => !(await page.locator('#change').isVisible()));

/** Delays the answers to some requests until they are released. */
class DelayedAnswers {
  readonly #page: Page;
  #routes: (() => Promise<void>)[] = [];

  private constructor(page: Page) {
    this.#page = page;
  }

  static async of(
    page: Page,
    which: (question: BucketQuestion) => boolean,
    asks = true,
  ): Promise<DelayedAnswers> {
    const delayed = new DelayedAnswers(page);
    await page.route('**/buckets', async (route: Route) => {
      if (!which(route.request().postDataJSON() as BucketQuestion)) return route.continue();
      // With `asks`, the server answers now; otherwise when the request is released.
      const response = asks ? await route.fetch() : undefined;
      delayed.#routes.push(() => (response === undefined ? route.continue() : route.fulfill({ response })));
    });
    return delayed;
  }

  async until(count: number): Promise<void> {
    await waitFor(`${count} delayed answers`, () => this.#routes.length >= count || undefined);
  }

  /** Releases the answers, and resolves when the page has received them. */
  async release(): Promise<void> {
    for (const go of this.#routes.splice(0)) {
      const received = this.#page.waitForResponse((response) => response.url().endsWith('/buckets'));
      await go();
      await (await received).finished();
    }
    // The page has processed the answer by then.
    await this.#page.evaluate('new Promise((done) => setTimeout(() => requestAnimationFrame(done)))');
  }
}

describePage('a late answer', () => {
  test('to a dry run does not replace the current dialog', async () => {
    const page = await open();
    await showBucket(page, 'shop', { customer: 'late' });
    const delayed = await DelayedAnswers.of(
      page,
      ({ action, dry_run: dry }) => action === 'grant' && dry === true,
    );
    await button(page, 'Grant…').click();
    await delayed.until(1);
    await button(page, 'Cancel').click();
    await untilClosed(page);
    await button(page, 'Fill up…').click();
    await page.getByRole('heading', { name: /^Fill up.*\?$/ }).waitFor();
    await delayed.release();
    await expect(dialogTitle(page)).resolves.toMatch(/^Fill up.*\?$/);
    await button(page, 'Confirm').click();
    await page.getByRole('heading', { name: /^Done: fill up/ }).waitFor();
  });

  test('to a change leaves another dialog alone, is reported, and refreshes the bucket', async () => {
    for (let each = 0; each < 5; each++) await shop.take('customer=slow');
    const page = await open();
    await showBucket(page, 'shop', { customer: 'slow' });
    const left = () => page.locator('#bucket-panel table').innerText();
    expect(await left()).toMatch(/per-customer\s+0\s+5/);
    const delayed = await DelayedAnswers.of(
      page,
      ({ action, dry_run: dry }) => action === 'reset' && dry !== true,
      false,
    );
    await button(page, 'Fill up…').click();
    await button(page, 'Confirm').click();
    await delayed.until(1);
    await page.keyboard.press('Escape');
    await expect(page.locator('#change').isVisible()).resolves.toBe(true);
    // Some browsers close the dialog like this when Escape is pressed again.
    await page.evaluate("document.getElementById('change').close()");
    await untilClosed(page);
    await button(page, 'Grant…').click();
    await page.getByRole('heading', { name: /^Grant.*\?$/ }).waitFor();
    await delayed.release();
    await waitFor('the counts', async () => /per-customer\s+5\s+5/.test(await left()));
    await expect(dialogTitle(page)).resolves.toMatch(/^Grant.*\?$/);
    await expect(page.locator('#announcements').textContent()).resolves.toBe('Done: fill up the buckets.');
  });
});

describePage('the dialog of a change', () => {
  const sentence = 'the store failed, so it says';
  const error = (status: number, more = {}) => ({
    status,
    body: JSON.stringify({ error: sentence, ...more }),
  });
  test.each([
    ['nothing was changed', error(503), 'not done'],
    ['nothing may be done', error(403), 'not done'],
    ['nobody knows', error(503, { maybe_done: true }), 'outcome unknown'],
    ['nobody foresaw', error(500), 'outcome unknown'],
    ['a proxy tells', { status: 504, body: '<html>' }, 'outcome unknown'],
    ['the answer is none', { status: 200, body: '{}' }, 'outcome unknown'],
    ['the answer is null', { status: 200, body: 'null' }, 'outcome unknown'],
    ['no answer comes', undefined, 'outcome unknown'],
  ])('says so if %s', async (_what, answer, title) => {
    const page = await open();
    scene.expectLoss();
    await showBucket(page, 'shop', { customer: 'unsure' });
    await button(page, 'Fill up…').click();
    await button(page, 'Confirm').waitFor();
    const made = (route: Route) =>
      answer === undefined ? route.abort() : route.fulfill({ contentType: 'application/json', ...answer });
    await page.route('**/buckets', made);
    await button(page, 'Confirm').click();
    await page.getByRole('heading', { name: `Fill up the buckets: ${title}` }).waitFor();
    await expect(page.locator('#change-body').innerText()).resolves.not.toContain('Nothing has changed yet');
    await page.unroute('**/buckets', made);
    const again = page.waitForRequest((request) => request.url().endsWith('/buckets'));
    await button(page, 'Close').click();
    expect((await again).postDataJSON()).toMatchObject({ action: 'show' });
  });
});

describePage('answers that the page does not understand', () => {
  test.each(['{}', 'null', '{"buckets":[{}],"notes":[]}'])('%s is reported as such', async (body) => {
    const page = await open();
    await showBucket(page, 'shop', { customer: 'mallory' });
    const made = (route: Route) => route.fulfill({ contentType: 'application/json', body });
    await page.route('**/buckets', made);
    await button(page, 'Fill up…').click();
    await page.getByRole('heading', { name: 'Fill up the buckets: not possible' }).waitFor();
    await button(page, 'Close').click();
    await button(page, 'Refresh').click();
    const panel = page.locator('#bucket-panel');
    await panel.getByText(/cannot read weir's answer/).waitFor();
    await expect(panel.locator('table').count()).resolves.toBe(0);
    await expect(page.locator('#bucket-actions').isVisible()).resolves.toBe(false);
    // The page requests the buckets again as soon as it shows the view.
    await page.unroute('**/buckets', made);
    await goTo(page, 'overview');
    await goTo(page, 'bucket');
    await panel.locator('table').waitFor();
    await expect(page.locator('#bucket-actions').isVisible()).resolves.toBe(true);
  });
});

describePage('input for one caller', () => {
  test('is kept for the same caller, and cleared for the next one', async () => {
    const page = await open();
    await showBucket(page, 'shop', { customer: 'one' });
    const filled = async () => [await page.locator('#grant-tokens').inputValue()];
    await page.locator('#grant-tokens').fill('99');
    await showBucket(page, 'shop', { customer: 'one' });
    expect(await filled()).toEqual(['99']);
    await showBucket(page, 'shop', { customer: 'two' });
    await page.locator('#bucket-panel', { hasText: 'customer=two' }).waitFor();
    expect(await filled()).toEqual(['10']);
  });
});
