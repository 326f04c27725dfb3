/* What is seen stays where it is while figures go on, and says the same in words, axis and line. */
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import type { HistoryAnswer } from '../../src/server/page/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { launchBrowser, openPage, type WatchedPage } from '../support/page/browser.js';
import { untilHeard } from '../support/page/views.js';
import { descriptor } from '../support/policy/decider.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

jest.setTimeout(90_000);

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
const POLICY =
  'domain: shop\ndescriptors: [{ key: customer, rate_limit: { unit: year, requests_per_unit: 5 } }]\n';
const closers: (() => unknown)[] = [];
let browser: Browser;
let opened: WatchedPage | undefined;
beforeAll(async () => {
  if (optionalToolPath('chromium') === undefined) return;
  browser = await launchBrowser();
});
afterEach(async () => {
  const problems = opened?.problems();
  for (const close of closers.splice(0).toReversed()) await close();
  opened = undefined;
  expect(problems ?? []).toEqual([]);
});
afterAll(() => browser?.close());

const start = async (options: Parameters<typeof startWeir>[0]): Promise<WeirServer> => {
  const server = await startWeir(options);
  closers.push(() => server.stop());
  return server;
};
const clientOf = ({ grpcPort }: WeirServer): RlsClient => {
  const client = new RlsClient(grpcPort);
  closers.push(() => client.close());
  return client;
};
const open = async ({ debugPort }: WeirServer): Promise<Page> => {
  const watched = await openPage(browser, `http://127.0.0.1:${debugPort}/`);
  opened = watched;
  closers.push(() => watched.close());
  await untilHeard(watched.page);
  return watched.page;
};

describePage('a chart', () => {
  test('says of a burst what the history says, in words, axis and line', async () => {
    const server = await start({ policy: POLICY });
    const client = clientOf(server);
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
    // The next step is over, in which nobody was denied: the peak stays, and now is that step.
    await waitFor('a quiet step', async () => (await chart.locator('.rate').innerText()) === '0');
    const peak = Number((await chart.locator('.peak').innerText()).replace('peak ', ''));
    expect(peak).toBeCloseTo(await highest(), 0);
    await expect(chart.locator('desc').textContent()).resolves.toBe(`Now 0, at most ${peak} in the hour.`);
    const top = Number(await chart.locator('.axis-top').innerText());
    const line = (await chart.locator('.line').getAttribute('d')) ?? '';
    const places = [...line.matchAll(/[ML][\d.]+ ([\d.]+)/g)].map(([, y]) => Number(y));
    expect(Math.min(...places)).toBeCloseTo(100 - (100 * peak) / top, 0);
  });
});
