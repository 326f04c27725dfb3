/* Tests that a page of another site cannot make a real browser change anything in weir. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { CODE } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { launchBrowser } from '../support/page/browser.js';
import { descriptor } from '../support/policy/decider.js';
import { optionalToolPath } from '../support/process/tools.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;

const POLICY = `domain: shop
descriptors:
  - { key: customer, rate_limit: { unit: year, requests_per_unit: 2 } }
`;
/** A name that resolves to this machine, like the name of a site after DNS rebinding. */
const SITE = 'site.example';

describePage('a page of another site', () => {
  let browser: Browser;
  let page: Page;
  let server: WeirServer;
  let client: RlsClient;
  const site = createServer((_, response) => response.setHeader('content-type', 'text/html').end('a page'));
  beforeAll(async () => {
    await new Promise<void>((listening) => site.listen(0, '127.0.0.1', listening));
    server = await startWeir({ policy: POLICY });
    client = new RlsClient(server.grpcPort);
    browser = await launchBrowser([`--host-resolver-rules=MAP ${SITE} 127.0.0.1`]);
    page = await browser.newPage();
  });
  afterAll(() => {
    site.close();
  });

  const take = async (customer: string) =>
    (await client.ask('shop', [descriptor([`customer=${customer}`])])).response?.overallCode;

  /** Sends `/json` a request that needs no preflight; returns the status, or 0 if the browser hides it. */
  const send = (address: string, customer: string, more: object, mode: 'no-cors' | 'same-origin') => {
    const entries = [{ key: 'customer', value: customer }];
    const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries, ...more }] });
    return page.evaluate(
      async ([url, text, how]) =>
        (
          await fetch(url, {
            method: 'POST',
            mode: how,
            headers: { 'content-type': 'text/plain' },
            body: text,
          })
        ).status,
      [`${address}/json`, body, mode] as const,
    );
  };

  test.each(['127.0.0.1', SITE])('at http://%s neither empties nor fills a bucket', async (host) => {
    await page.goto(`http://${host}:${(site.address() as AddressInfo).port}/`);
    const address = `http://127.0.0.1:${server.httpPort}`;
    const [full, empty] = [`full at ${host}`, `empty at ${host}`];
    expect(await send(address, full, { hitsAddend: '2' }, 'no-cors')).toBe(0);
    expect(await take(full)).toBe(CODE.OK);
    for (let each = 0; each < 3; each++) await take(empty);
    await send(address, empty, { hitsAddend: '2', isNegativeHits: true }, 'no-cors');
    expect(await take(empty)).toBe(CODE.OVER_LIMIT);
    expect(await take(full)).toBe(CODE.OK);
  });

  test('with a rebound name sees no view and changes no bucket', async () => {
    for (const [port, path] of [
      [server.httpPort, '/metrics'],
      [server.debugPort, '/rlconfig'],
      [server.debugPort, '/stats'],
    ] as const) {
      const answer = await page.goto(`http://${SITE}:${port}${path}`);
      expect([answer?.status(), await answer?.text()]).toEqual([
        421,
        expect.stringContaining('use localhost'),
      ]);
    }
    const address = `http://${SITE}:${server.httpPort}`;
    await page.goto(`${address}/healthcheck`);
    expect(await send(address, 'rebound', { hitsAddend: '2' }, 'same-origin')).toBe(421);
    expect(await take('rebound')).toBe(CODE.OK);
    expect(await take('rebound')).toBe(CODE.OK);
  });
});
