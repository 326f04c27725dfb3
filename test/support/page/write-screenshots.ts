/*
 * `npm run screenshots [folder]` starts weir with the policies of a shop, generates an hour of traffic on a
 * clock that runs sixty times as fast, and takes screenshots of its page. The README's screenshots are written to
 * docs/images. All screenshots (desktop and phone, light and dark) are written to the folder; the default is a new one.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { RlsClient } from '../grpc/rls-client.js';
import { closeAll } from '../process/close-later.js';
import { preloading } from '../process/preload.js';
import { TempDir } from '../process/temp-dir.js';
import { repositoryRoot } from '../process/tools.js';
import { startWeir, type WeirServer } from '../weir/weir.js';
import { launchBrowser, openPage, type PageOptions } from './browser.js';
import { shopPolicies, shopTraffic } from './shop.js';

const SPEED = 60;
const HOUR_MS = 3_600_000 / SPEED;
const ROUND_MS = 40;
const MAX_BYTES = 200 * 1024;
const IMAGES = join(repositoryRoot, 'docs/images');

/** Views to capture, by the name of the screenshot. */
const VIEWS: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  overview: async (page) => {
    await page.goto(new URL('#overview', page.url()).href);
    await page.locator('#worst table').waitFor();
  },
  rules: async (page) => {
    await page.locator('nav a[href="#rules"]').click();
    await page.locator('.rule summary').first().click();
    await page.locator('.rule .chart').first().waitFor();
  },
  top: async (page) => {
    await page.locator('nav a[href="#top"]').click();
    await page.getByLabel('In the last').selectOption('hour');
    await page.getByText('mallory').first().waitFor();
  },
  bucket: async (page) => {
    await page.locator('nav a[href="#top"]').click();
    await page.getByLabel('In the last').selectOption('hour');
    const row = page.locator('#top-rows tbody tr', { hasText: /customer=mallory.*endpoint=checkout/ });
    await row.waitFor();
    await row.getByRole('button', { name: /bucket of customer=mallory endpoint=checkout/ }).click();
    await page.locator('#bucket-panel table').first().waitFor();
  },
  change: async (page) => {
    await VIEWS['bucket']?.(page);
    await page.getByRole('button', { name: 'Grant…' }).click();
    await page.getByRole('button', { name: 'Confirm' }).waitFor();
  },
  replicas: async (page) => {
    await page.locator('nav a[href="#replicas"]').click();
    await page.locator('#store').waitFor();
  },
};

async function start(from: number): Promise<WeirServer> {
  const policies = new TempDir();
  for (const [name, text] of Object.entries(shopPolicies())) policies.write(name, text);
  const server = await startWeir({
    env: {
      CONFIG_PATH: policies.path,
      NODE_OPTIONS: preloading('test/support/page/quick-clock.js'),
      WEIR_QUICK_CLOCK: String(SPEED),
      WEIR_QUICK_CLOCK_FROM: String(from),
    },
  });
  return server;
}

/** Generates the shop's traffic until `isOver` returns true. */
async function traffic(server: WeirServer, from: number, isOver: () => boolean): Promise<void> {
  const client = new RlsClient(server.grpcPort);
  for (let round = 0; !isOver(); round++) {
    const started = performance.now();
    const passed = (Date.now() - from) / HOUR_MS;
    await shopTraffic(client, Math.min(1, passed), round);
    await new Promise((resolve) =>
      setTimeout(
        resolve,
        Math.max(0, started + (passed < 1 ? ROUND_MS : ROUND_MS * SPEED) - performance.now()),
      ),
    );
  }
  client.close();
}

async function take(browser: Browser, server: WeirServer, look: PageOptions, folder: string): Promise<void> {
  for (const [name, show] of Object.entries(VIEWS)) {
    const opened = await openPage(browser, `http://127.0.0.1:${server.debugPort}/`, look);
    await opened.page.locator('#tiles .tile').first().waitFor();
    await show(opened.page);
    // The navigation bar stays at the top of the window, so a scrolled page would have the bar in its middle.
    if (name !== 'change') await opened.page.evaluate('scrollTo(0, 0)');
    const path = join(folder, `page-${name}-${look.width}-${look.scheme}.png`);
    await opened.page.screenshot({ path, fullPage: name !== 'change' });
    for (const problem of opened.problems()) console.log(`${path}: ${problem}`);
    await opened.close();
  }
}

/** Reduces the number of colours, which cuts the size to a third. */
function keep(folder: string, name: string): void {
  const path = join(IMAGES, `page-${name}.png`);
  execFileSync('cp', [join(folder, `page-${name}-desk-light.png`), path]);
  const { size } = statSync(path);
  console.log(`${path}: ${Math.ceil(size / 1024)} KB`);
  if (size > MAX_BYTES) throw new Error(`${path} has more than ${MAX_BYTES / 1024} KB`);
}

async function main(folder: string): Promise<void> {
  mkdirSync(IMAGES, { recursive: true });
  const browser = await launchBrowser();
  const from = Date.now();
  const server = await start(from);
  let isOver = false;
  try {
    const asked = traffic(server, from, () => isOver);
    // The history also needs some steps at normal speed.
    await new Promise((resolve) => setTimeout(resolve, from + HOUR_MS + 35_000 - Date.now()));
    for (const width of ['desk', 'phone'] as const) {
      for (const scheme of ['light', 'dark'] as const) await take(browser, server, { width, scheme }, folder);
    }
    isOver = true;
    await asked;
    for (const name of ['overview', 'bucket']) keep(folder, name);
    console.log(`all screenshots: ${folder}`);
  } finally {
    isOver = true;
    await closeAll();
  }
}

const [folder = mkdtempSync(join(tmpdir(), 'weir-page-'))] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
main(folder).catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
