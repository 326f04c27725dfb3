/* Tests that the page does not move while counts update, and that texts, axis and line agree. */
import { rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Locator, Page } from 'playwright-core';
import type { HistoryAnswer } from '../../src/admin/page/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { launchBrowser, openPage, type WatchedPage } from '../support/page/browser.js';
import { goTo, untilConnected } from '../support/page/views.js';
import { descriptor } from '../support/policy/decider.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
const POLICY =
  'domain: shop\ndescriptors: [{ key: customer, rate_limit: { unit: year, requests_per_unit: 5 } }]\n';
let browser: Browser;
let opened: WatchedPage | undefined;
beforeAll(async () => {
  if (optionalToolPath('chromium') === undefined) return;
  browser = await launchBrowser();
});
afterEach(async () => {
  const problems = opened?.problems();
  opened = undefined;
  expect(problems ?? []).toEqual([]);
});

const open = async ({ debugPort }: WeirServer): Promise<Page> => {
  const watched = await openPage(browser, `http://127.0.0.1:${debugPort}/`, { movesClock: true });
  opened = watched;
  await untilConnected(watched.page);
  return watched.page;
};

describePage('a chart', () => {
  test('shows a burst as the history records it, in its text, axis and line', async () => {
    const server = await startWeir({ policy: POLICY });
    const client = new RlsClient(server.grpcPort);
    const page = await open(server);
    await Promise.all(Array.from({ length: 305 }, () => client.ask('shop', [descriptor(['customer=a'])])));
    const highest = async (): Promise<number> => {
      const answer = await fetch(`http://127.0.0.1:${server.debugPort}/history`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      });
      return Math.max(0, ...(((await answer.json()) as HistoryAnswer).all?.denied ?? []));
    };
    await waitFor('the burst in the history', async () => (await highest()) > 0);
    const chart = page.locator('#traffic .chart.denied');
    await waitFor('the burst on the page', async () => !(await chart.innerText()).includes('peak 0'));
    // The next step has no denials: the peak stays, and "now" refers to that step.
    await waitFor('a quiet step', async () => (await chart.locator('.rate').innerText()) === '0');
    const peak = Number((await chart.locator('.peak').innerText()).replace('peak ', ''));
    expect(peak).toBeCloseTo(await highest(), 0);
    await expect(chart.locator('.plot .spoken').last().textContent()).resolves.toBe(`Now 0, peak ${peak}.`);
    const top = Number(await chart.locator('.axis-top').innerText());
    // The share of the canvas above the highest pixel of the line.
    const above = (await page.evaluate(`(() => {
  const canvas = document.querySelector('#traffic .chart.denied canvas');
  const { width, height } = canvas;
  const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
  for (let at = 3; at < data.length; at += 4) if (data[at] > 200) return Math.floor(at / 4 / width) / height;
})()`)) as number;
    expect(Math.abs(above - (1 - peak / top))).toBeLessThan(0.03);
  });
});

describePage('the Top view', () => {
  test('shows an answer that takes longer than the polling interval', async () => {
    const server = await startWeir({ policy: POLICY });
    const client = new RlsClient(server.grpcPort);
    for (let each = 0; each < 7; each++) await client.ask('shop', [descriptor(['customer=a'])]);
    const page = await open(server);
    await page.route('**/top', async (route) => {
      await page.clock.runFor(5500);
      // The page needs no answer after the user has left it.
      await route.continue().catch(() => {});
    });
    await page.locator('nav a[href="#top"]').click();
    await page.locator('#top-about', { hasText: 'Loading…' }).waitFor();
    await page.locator('#top-rows tbody tr', { hasText: 'customer=a' }).waitFor();
    await expect(page.locator('#top-about').innerText()).resolves.toMatch(/^Exact/);
    await page.getByLabel('Sort by').selectOption('used');
    await page.locator('#top-about', { hasText: 'Loading…' }).waitFor();
    await page.getByText('Most used buckets').waitFor();
    await page.unrouteAll({ behavior: 'wait' });
  });

  test('keeps the focus on the row of a caller while counts and places change', async () => {
    const server = await startWeir({ policy: POLICY });
    const client = new RlsClient(server.grpcPort);
    const deny = async (customer: string, count: number): Promise<void> => {
      for (let each = 0; each < count; each++)
        await client.ask('shop', [descriptor([`customer=${customer}`])]);
    };
    await deny('a', 8);
    await deny('b', 7);
    const page = await open(server);
    await goTo(page, 'top');
    const rows = page.locator('#top-rows tbody tr');
    await expect(rows.first().innerText()).resolves.toContain('customer=a');
    await rows.first().getByRole('button', { name: 'Show' }).focus();
    await deny('b', 5);
    await waitFor('the other order', async () => (await rows.first().innerText()).includes('customer=b'));
    const focused = page.locator('#top-rows tr', { has: page.locator('button:focus') });
    await expect(focused.innerText()).resolves.toContain('customer=a');
  });

  test('links to the bucket of an override', async () => {
    const server = await startWeir({ policy: POLICY });
    const client = new RlsClient(server.grpcPort);
    const asked = { ...descriptor(['plan=big']), limit: { requestsPerUnit: 3, unit: 4 } };
    for (let each = 0; each < 9; each++) await client.ask('shop', [asked]);
    const page = await open(server);
    await goTo(page, 'top');
    const row = page.locator('#top-rows tbody tr').first();
    await expect(row.innerText()).resolves.toMatch(/plan=big\s.*override: 3\/day\s/s);
    await row.getByRole('button', { name: 'Show' }).click();
    const table = page.locator('#bucket-panel table');
    await expect(table.innerText()).resolves.toMatch(/override: the limit in the request\s+0\s+3/);
    await expect(page.locator('#bucket-limit').inputValue()).resolves.toBe('3/day');
  });
});

describePage('the chosen domain', () => {
  test('stays selected while it is not loaded', async () => {
    const folder = new TempDir();
    const file = folder.join('zeta.yaml');
    folder.write('aaa.yaml', POLICY.replace('shop', 'aaa'));
    writeFileSync(file, POLICY.replace('shop', 'zeta'));
    const server = await startWeir({ env: { CONFIG_PATH: folder.path } });
    const page = await open(server);
    await goTo(page, 'bucket');
    const [domain, top] = [page.locator('#bucket-domain'), page.locator('#top-domain')];
    await domain.selectOption('zeta');
    const shown = (select: Locator) => select.locator('option:checked').textContent();
    rmSync(file);
    await waitFor('the mark', async () => (await shown(domain)) === 'zeta (not in effect)');
    writeFileSync(file, POLICY.replace('shop', 'zeta'));
    await waitFor('the domain', async () => (await shown(domain)) === 'zeta');
    await expect(domain.inputValue()).resolves.toBe('zeta');
    await goTo(page, 'top');
    await top.selectOption('zeta');
    rmSync(file);
    await waitFor('the mark', async () => (await shown(top)) === 'zeta (not in effect)');
    await goTo(page, 'bucket');
    await expect(domain.inputValue()).resolves.toBe('zeta');
  });
});

describePage('while counts and policies change', () => {
  const ACTIVE = '[document.activeElement.tagName, document.activeElement.textContent]';

  test('links and buttons next to tables keep the focus', async () => {
    const keys = Array.from({ length: 60 }, (_, each) => `key-${each}`);
    const rules = keys.map((key) => `  - { key: ${key}, rate_limit: { unit: year, requests_per_unit: 1 } }`);
    const server = await startWeir({ policy: `domain: shop\ndescriptors:\n${rules.join('\n')}\n` });
    const client = new RlsClient(server.grpcPort);
    const ask = async (): Promise<void> => {
      for (const key of keys) await client.ask('shop', [descriptor([`${key}=x`])]);
    };
    await ask();
    await ask();
    const page = await open(server);
    const changes = async (place: Locator): Promise<void> => {
      const before = await place.innerText();
      await waitFor('other counts', async () => {
        await ask();
        return (await place.innerText()) !== before;
      });
    };
    const worst = page.locator('#worst tbody tr').first();
    await worst.waitFor();
    await page.getByRole('link', { name: 'Show affected callers' }).focus();
    await changes(worst);
    await expect(page.evaluate(ACTIVE)).resolves.toEqual(['A', 'Show affected callers']);
    const all = page.getByRole('button', { name: 'Show all 60' });
    await all.focus();
    await changes(worst);
    await expect(page.evaluate(ACTIVE)).resolves.toEqual(['BUTTON', 'Show all 60']);
    await all.press('Enter');
    await expect(page.locator('#worst tbody tr').count()).resolves.toBe(60);
    await expect(page.evaluate('document.activeElement.parentElement.id')).resolves.toBe('worst');
  });

  test('rules stay open, and keep focus and scroll position', async () => {
    const folder = new TempDir();
    const write = (domain: string, more = '') => {
      const rules = ['one', 'two', ...(more === '' ? [] : [more])].map(
        (key) => `  - { key: ${domain}-${key}, rate_limit: { unit: year, requests_per_unit: 5 } }`,
      );
      writeFileSync(
        folder.join(`${domain}.yaml`),
        `domain: ${domain}.shop\ndescriptors:\n${rules.join('\n')}\n`,
      );
    };
    write('aaa');
    write('zeta');
    const server = await startWeir({ env: { CONFIG_PATH: folder.path } });
    const page = await open(server);
    await goTo(page, 'rules');
    const rule = (key: string) => page.locator('.rule', { hasText: key });
    await rule('aaa-one').locator('summary').click();
    await rule('zeta-one').locator('summary').click();
    const opened = () => page.locator('.rule[open] .facts').count();
    await waitFor('both', async () => (await opened()) === 2);
    await page.evaluate('scrollTo(0, 120)');
    const scrolled = await page.evaluate('scrollY');
    const isSteady = async (): Promise<void> => {
      expect(await opened()).toBe(2);
      const active = (await page.evaluate('document.activeElement.textContent')) as string;
      expect(active).toContain('zeta-one');
    };
    // Another domain changes, then this one, and then a third one is added.
    write('aaa', 'new');
    await rule('aaa-new').waitFor();
    await isSteady();
    await expect(page.evaluate('scrollY')).resolves.toBe(scrolled);
    write('zeta', 'new');
    await rule('zeta-new').waitFor();
    await isSteady();
    write('mmm');
    await rule('mmm-one').waitFor();
    await isSteady();
    // Figures and charts keep updating in the rebuilt rows.
    const client = new RlsClient(server.grpcPort);
    await client.ask('zeta.shop', [descriptor(['zeta-one=x'])]);
    await rule('zeta-one').locator('.chart').first().waitFor();
    // A filter that matches a domain's name shows the domain with its rules.
    await page.getByLabel('Filter by path or name').fill('mm.shop');
    await page.getByText('2 rules found').waitFor();
    await expect(page.locator('.rule').count()).resolves.toBe(2);
    await page.getByLabel('Filter by path or name').fill('nowhere');
    await page.getByText('No domain name').waitFor();
    await page.getByLabel('Filter by path or name').fill('');
    await rule('zeta-two').waitFor();
  });
});
