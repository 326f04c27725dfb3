/* Tests what the page shows without data, with too much data, and with malicious text. */
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { axeViolations, overflow } from '../support/page/browser.js';
import { servedPages } from '../support/page/served-pages.js';
import { goTo, showBucket } from '../support/page/views.js';
import { descriptor } from '../support/policy/decider.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath } from '../support/process/tools.js';
import { untilHealthy } from '../support/process/until-healthy.js';
import { waitFor } from '../support/process/wait-for.js';

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
const served = servedPages();

const HTML = '<img src=x onerror=alert(1)></script><script>alert(2)</script>';
const RTL = '\u202Eevil\u2066\u05d0\u05d1';
const LONG = 'long-'.repeat(819);

describePage('hostile names', () => {
  test.each(['desk', 'phone'] as const)('do not break the page on a %s', async (width) => {
    const names = [HTML, RTL, LONG];
    const domain = (name: string) => `domain: ${JSON.stringify(name)}
descriptors:
${names
  .map(
    (key) => `  - key: ${JSON.stringify(key)}
    value: ${JSON.stringify(key)}
    rate_limit: { name: ${JSON.stringify(key.slice(0, 100))}, unit: hour, requests_per_unit: 1 }
  - key: ${JSON.stringify(`any ${key}`)}
    rate_limit: { unit: hour, requests_per_unit: 1 }
`,
  )
  .join('')}`;
    const folder = new TempDir();
    for (const [at, name] of names.entries()) folder.write(`policy-${at}.yaml`, domain(name));
    const server = await served.start({ env: { CONFIG_PATH: folder.path } });
    folder.remove();
    const client = new RlsClient(server.grpcPort);
    for (const name of names) {
      for (const key of [name, `any ${name}`]) {
        const entries = descriptor([`x=y`], { entries: [{ key, value: name }] });
        for (let each = 0; each < 3; each++) await client.ask(name, [entries]);
      }
    }
    client.close();
    const page = await served.open({ width });
    page.on('dialog', () => expect('a dialog').toBe('none'));
    const whole = async (view: string) => {
      expect([view, await overflow(page)]).toEqual([view, 0]);
      await expect(page.locator('main img, main script').count()).resolves.toBe(0);
      const text = (await page.evaluate('document.body.innerText')) as string;
      expect(text).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
      return text;
    };
    await page.locator('#worst table').waitFor();
    expect(await whole('overview')).toContain('<img src=x onerror=alert(1)>');
    for (const view of ['rules', 'top'] as const) {
      await goTo(page, view);
      if (view === 'rules') for (const row of await page.locator('.rule > summary').all()) await row.click();
      await whole(view);
      expect(await axeViolations(page)).toEqual([]);
    }
    await goTo(page, 'top');
    expect(await whole('top')).toContain('\\u{202e}evil');
    await page
      .getByText(/weir stores only the beginning of long values/)
      .first()
      .waitFor();
    // A key with an equals sign cannot be typed, but the link to the bucket holds it.
    await page
      .getByRole('button', { name: /^Show the bucket of any <img/ })
      .first()
      .click();
    await page.locator('#entries', { hasText: 'You cannot edit the entries.' }).waitFor();
    await page.locator('#bucket-panel table').waitFor();
    await whole('bucket');
    await page.getByRole('button', { name: 'Enter other entries' }).click();
    await showBucket(page, HTML, { [`any ${RTL}`]: LONG });
    await page.locator('#bucket-panel table').waitFor();
    await page.getByRole('button', { name: 'show all 4,095 characters' }).first().click();
    await whole('bucket');
    await showBucket(page, HTML, { [`any ${RTL}`]: `${HTML}${RTL}` });
    await page.getByRole('button', { name: 'Fill up…' }).click();
    await page.getByRole('heading', { name: /^Fill up the buckets/ }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await whole('dialog');
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByRole('heading', { name: /^Done/ }).waitFor();
    expect(await whole('dialog')).toContain('<img src=x onerror=alert(1)>');
  });
});

describePage('ten thousand rules', () => {
  test('are shown in pages of a hundred, found by a filter, and opened', async () => {
    const values = Array.from({ length: 10_000 }, (_, each) => `customer-${each}`);
    const rules = values.map(
      (value) =>
        `  - { key: customer, value: ${value}, rate_limit: { name: ${value}, unit: hour, requests_per_unit: 5 } }`,
    );
    const policy = `domain: big\ndescriptors:\n${rules.join('\n')}\n`;
    const { process: weir, httpPort } = await served.start({ policy, untilHealthy: false });
    // Loading so many rules takes time on a busy machine.
    await untilHealthy('weir', weir, httpPort, 60_000);
    const page = await served.open();
    await goTo(page, 'rules');
    await page.getByText('10,000 rules', { exact: true }).waitFor();
    await expect(page.locator('.rule').count()).resolves.toBe(100);
    await page.getByRole('button', { name: 'Show 100 of 9,900 more' }).click();
    await waitFor('the next rules', async () => (await page.locator('.rule').count()) === 200);
    await page.getByLabel('Filter by path or name').fill('customer-7777');
    await page.getByText('1 rule found').waitFor();
    await page.locator('.rule summary').click();
    await page.getByText('No request matched this rule in the last hour.').waitFor();
    await page.getByLabel('Filter by path or name').fill('no such rule');
    await page.getByText('No domain name, rule path or rule name contains this text.').waitFor();
    expect(await axeViolations(page)).toEqual([]);
  });
});

describePage('empty states', () => {
  test('say what to do next without a policy', async () => {
    const folder = new TempDir();
    await served.start({ env: { CONFIG_PATH: folder.path } });
    const page = await served.open();
    await page.getByText('No policy is in effect, so weir does not limit any requests.').first().waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByText('No requests in the last hour.').waitFor();
    // The domain appears as soon as its file exists.
    folder.write(
      'shop.yaml',
      'domain: shop\ndescriptors: [{ key: customer, rate_limit: { unit: hour, requests_per_unit: 5 } }]\n',
    );
    await waitFor('the domain', async () => (await page.locator('#domains').innerText()).includes('shop'));
  });

  test('say how to send a request if there were none, and name settings that turn counting off', async () => {
    await served.start({ env: { TOP_BUCKETS: '0', HISTORY_RULES: '0' } });
    const page = await served.open();
    await page.getByText('No requests in the last hour.').waitFor();
    await page.getByText('To send a test request, see docs/start.md.').waitFor();
    await expect(page.locator('#worst').innerText()).resolves.toMatch(/^HISTORY_RULES is 0, so weir records/);
    await goTo(page, 'top');
    await page.getByText(/TOP_BUCKETS is 0/).waitFor();
    await goTo(page, 'rules');
    await page.locator('.rule summary').first().click();
    await page
      .getByText('HISTORY_RULES is 0, so weir does not record the rates of individual rules.')
      .waitFor();
  });

  test('errors of a reload are shown in full, and the page says that the domain is kept', async () => {
    const text =
      'domain: shop\ndescriptors:\n  - key: customer\n    rate_limit: { unit: hour, requests_per_unit: 5 }\n';
    const server = await served.start({ policy: text });
    const page = await served.open();
    writeFileSync(server.policyPath ?? '', text.replace('hour', 'fortnight'));
    await page.getByRole('heading', { name: 'Policy errors' }).waitFor();
    await expect(page.locator('#view-overview .problem').innerText()).resolves.toMatch(
      /policy\.yaml:4:\d+.*fortnight/s,
    );
    await expect(page.locator('#domains').innerText()).resolves.toMatch(/the previous version is in effect/);
    expect(await axeViolations(page)).toEqual([]);
    writeFileSync(server.policyPath ?? '', text);
    await waitFor('the end of it', async () => (await page.locator('#view-overview .problem').count()) === 0);
  });
});
