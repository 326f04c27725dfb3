import type { Page } from 'playwright-core';

export const VIEW_NAMES = ['overview', 'rules', 'top', 'bucket', 'plans', 'replicas'] as const;

/** Selectors of the elements that a view shows once it has data. */
const SHOWN: Readonly<Record<(typeof VIEW_NAMES)[number], string>> = {
  overview: '#tiles .tile',
  rules: '#rules-place .card, #rules-place .empty',
  top: '#top-rows > *, #top-failed > *',
  bucket: '#bucket-domain',
  plans: '#view-plans .card, #view-plans .empty',
  replicas: '#store',
};

/** Resolves when the page shows the connection state `state`: `live`, `polling every 5 s`, or `no answer`. */
export async function untilConnected(page: Page, state = 'live'): Promise<void> {
  await page.locator('#connection', { hasText: state }).waitFor({ timeout: 20_000 });
}

/** Opens a view by its link, and waits for its content. */
export async function goTo(page: Page, view: (typeof VIEW_NAMES)[number]): Promise<void> {
  await page.locator(`nav a[href="#${view}"]`).click();
  await page.locator(SHOWN[view]).first().waitFor();
}

/** Looks up the bucket of a caller by typing its entries. */
export async function showBucket(
  page: Page,
  domain: string,
  entries: Readonly<Record<string, string>>,
): Promise<void> {
  await goTo(page, 'bucket');
  await page.getByLabel('Domain', { exact: true }).last().selectOption(domain);
  const lines = Object.entries(entries).map(([key, value]) => `${key}=${value}`);
  await page.getByLabel('Entries, one key=value per line').fill(lines.join('\n'));
  await page.getByRole('button', { name: 'Show limits' }).click();
  // The page moves the focus to the title when it shows the answer, unless it asks for a token. The previous answer
  // stays until then.
  await page.locator('#bucket-result-title:focus, dialog[open]').first().waitFor();
}
