import { readFileSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { toolPath } from '../process/tools.js';

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** The widths at which the page is looked at: that of a desk, and that of a phone. */
export const WIDTHS = { desk: 1440, phone: 390 } as const;

/** Starts a Chromium without a window, with a profile of its own that is empty; `args` are more for it. Close it. */
export function launchBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: toolPath('chromium'),
    headless: true,
    chromiumSandbox: false,
    args: [
      ...['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
      ...['--disable-component-update', '--disable-sync'],
      ...args,
    ],
  });
}

/** How a page is looked at. */
export interface Look {
  readonly width?: keyof typeof WIDTHS;
  readonly scheme?: 'light' | 'dark';
  /** Whether the clock of the page can be moved on by `page.clock`; until then it runs as any clock. */
  readonly movesClock?: boolean;
}

/** A page, with whatever it did wrong. */
export interface WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors of scripts, what the console was told of, and requests to other origins; see {@link expectLoss}. */
  problems(): readonly string[];
  /** From now on answers that are no success, and those that do not come, are what the test is about. */
  expectLoss(): void;
  close(): Promise<void>;
}

const LOSS = /^error: Failed to load resource|^error: .*net::ERR_/;

/** Opens `url` in a context of its own, in which nobody has been before. */
export async function openPage(browser: Browser, url: string, look: Look = {}): Promise<WatchedPage> {
  const { width = 'desk', scheme = 'light', movesClock = false } = look;
  const context = await browser.newContext({
    viewport: { width: WIDTHS[width], height: width === 'desk' ? 900 : 844 },
    colorScheme: scheme,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
  });
  const problems: string[] = [];
  let losses = false;
  const note = (problem: string): void => {
    if (!losses || !LOSS.test(problem)) problems.push(problem);
  };
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.on('pageerror', (error) => note(`script: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      note(`${message.type()}: ${message.text()}`);
  });
  const { origin } = new URL(url);
  page.on('request', (request) => {
    const asked = request.url();
    if (!asked.startsWith(`${origin}/`) && !asked.startsWith('data:')) note(`request to ${asked}`);
  });
  if (movesClock) await page.clock.install();
  await page.goto(url);
  return {
    page,
    context,
    problems: () => problems,
    expectLoss: () => {
      losses = true;
    },
    close: () => context.close(),
  };
}

interface AxeViolation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly any: readonly { readonly message: string }[] }[];
}

/** What axe-core finds wrong with the page as it is shown now, a line for each kind. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  // By the debugger, since the page lets no script of others run.
  await page.evaluate(AXE);
  const found = (await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
  )) as readonly AxeViolation[];
  return found.map(({ id, help, nodes }) => {
    const places = nodes.slice(0, 3).map(({ html, any }) => {
      const reasons = any.map(({ message }) => message).join('; ');
      return `${html.slice(0, 200)} ${reasons}`;
    });
    return `${id}: ${help}: ${places.join(' | ')}`;
  });
}

/** How many pixels of the page lie beyond the right end of the screen. */
export async function overflow(page: Page): Promise<number> {
  return (await page.evaluate('document.documentElement.scrollWidth - innerWidth')) as number;
}
