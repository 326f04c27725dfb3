import { afterEach, beforeAll, expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { optionalToolPath } from '../process/tools.js';
import { startWeir, type WeirServer } from '../weir/weir.js';
import { launchBrowser, openPage, type PageOptions, type WatchedPage } from './browser.js';
import { untilConnected } from './views.js';

/** Server and page of one test. */
export interface ServedPages {
  /** Starts the server of a test, which is stopped after the test. */
  start(options: Parameters<typeof startWeir>[0]): Promise<WeirServer>;
  /** Opens the page of that server and waits until it is live. */
  open(look?: PageOptions): Promise<Page>;
}

/**
 * A browser that the tests of a file share, with a server and its page for each test. Call this function once, outside
 * of any test: it also stops the servers, closes the pages, and fails a test whose page had problems.
 */
export function servedPages(): ServedPages {
  let browser: Browser | undefined;
  let opened: WatchedPage | undefined;
  let server: WeirServer;
  beforeAll(async () => {
    if (optionalToolPath('chromium') === undefined) return;
    browser = await launchBrowser();
  });
  afterEach(async () => {
    const problems = opened?.problems();
    opened = undefined;
    expect(problems ?? []).toEqual([]);
  });
  return {
    async start(options) {
      server = await startWeir(options);
      return server;
    },
    async open(look = {}) {
      opened = await openPage(browser as Browser, `http://127.0.0.1:${server.debugPort}/`, look);
      await untilConnected(opened.page);
      return opened.page;
    },
  };
}
