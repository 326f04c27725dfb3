import { readFileSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { closeLater } from '../process/close-later.js';
import { toolPath } from '../process/tools.js';

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** Widths of the page in tests, in pixels: a desktop screen and a phone. */
export const WIDTHS = { desk: 1440, phone: 390 } as const;

/** Starts a headless Chromium with a new, empty profile; `args` are further arguments. */
export async function launchBrowser(args: readonly string[] = []): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: toolPath('chromium'),
    headless: true,
    chromiumSandbox: false,
    args: [
      ...['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
      ...['--disable-component-update', '--disable-sync'],
      ...args,
    ],
  });
  return closeLater(browser, () => browser.close());
}

/** Options of a page. */
export interface PageOptions {
  readonly width?: keyof typeof WIDTHS;
  readonly scheme?: 'light' | 'dark';
  /** Whether `page.clock` can advance the page's clock, which runs normally until then. */
  readonly movesClock?: boolean;
}

/** A page, with a record of its problems. */
export interface WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Script errors, console messages, and requests to other origins; see {@link expectLoss}. */
  problems(): readonly string[];
  /** Stops recording unsuccessful and missing responses as problems, because the test causes them. */
  expectLoss(): void;
  close(): Promise<void>;
}

const FAILED_REQUEST = /^error: Failed to load resource|^error: .*net::ERR_/;

/** Opens `url`, which may name a file, in a new browser context. */
export async function openPage(browser: Browser, url: string, look: PageOptions = {}): Promise<WatchedPage> {
  const { width = 'desk', scheme = 'light', movesClock = false } = look;
  const context = await browser.newContext({
    viewport: { width: WIDTHS[width], height: width === 'desk' ? 900 : 844 },
    colorScheme: scheme,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
  });
  closeLater(context, () => context.close());
  const problems: string[] = [];
  let losses = false;
  const note = (problem: string): void => {
    if (!losses || !FAILED_REQUEST.test(problem)) problems.push(problem);
  };
  const page = await context.newPage();
  // As long as other waits. On a busy machine, the browser needs several seconds for a step.
  page.setDefaultTimeout(60_000);
  page.on('pageerror', (error) => note(`script: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      note(`${message.type()}: ${message.text()}`);
  });
  const { origin } = new URL(url);
  page.on('request', (request) => {
    const asked = request.url();
    if (asked !== url && !asked.startsWith(`${origin}/`) && !asked.startsWith('data:'))
      note(`request to ${asked}`);
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

/** Returns the problems that axe-core finds on the page as it is shown now, one line for each kind. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  // The debugger runs the script, because the page's security policy blocks foreign scripts.
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

/** Returns by how many pixels the page is wider than the screen. */
export async function overflow(page: Page): Promise<number> {
  return (await page.evaluate('document.documentElement.scrollWidth - innerWidth')) as number;
}
