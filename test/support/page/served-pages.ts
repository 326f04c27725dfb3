import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { optionalToolPath } from '../process/tools.js';
import { startWeir, type WeirServer } from '../weir/weir.js';
import { type Look, launchBrowser, openPage, type WatchedPage } from './browser.js';
import { untilHeard } from './views.js';

/** What each test of a file has for itself. */
export interface ServedPages {
  /** Starts the server of a test; it is stopped after the test. */
  start(options: Parameters<typeof startWeir>[0]): Promise<WeirServer>;
  /** Opens the page of that server and waits until it is live. */
  open(look?: Look): Promise<Page>;
}

/**
 * A browser that the tests of a file share, with a server and its page for each of them. Call it once, outside of any
 * test: it stops and closes them, and fails a test whose page did something wrong.
 */
export function servedPages(): ServedPages {
  let browser: Browser | undefined;
  let opened: WatchedPage | undefined;
  let server: WeirServer | undefined;
  beforeAll(async () => {
    if (optionalToolPath('chromium') === undefined) return;
    browser = await launchBrowser();
  });
  afterEach(async () => {
    const problems = opened?.problems();
    await opened?.close();
    await server?.stop();
    opened = server = undefined;
    expect(problems ?? []).toEqual([]);
  });
  afterAll(() => browser?.close());
  return {
    async start(options) {
      server = await startWeir(options);
      return server;
    },
    async open(look = {}) {
      opened = await openPage(browser as Browser, `http://127.0.0.1:${server?.debugPort}/`, look);
      await untilHeard(opened.page);
      return opened.page;
    },
  };
}
