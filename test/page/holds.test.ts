/* Tests the list of holds on the page, and their release. */
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { entriesOf } from '../support/buckets/admin-bench.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { PageScene } from '../support/page/scene.js';
import { showBucket } from '../support/page/views.js';
import { descriptor } from '../support/policy/decider.js';
import { optionalToolPath } from '../support/process/tools.js';
import { askBuckets } from '../support/weir/buckets.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: exports
descriptors:
  - { key: customer, rate_limit: { name: parallel, concurrency: { max: 5 } } }
`;

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
let scene: PageScene;
let server: WeirServer;
beforeAll(async () => {
  if (optionalToolPath('chromium') === undefined) return;
  scene = await PageScene.begin();
  server = await startWeir({ policy: POLICY });
});
afterEach(async () => expect((await scene?.close()) ?? []).toEqual([]));

describePage('the holds of a bucket', () => {
  test('are listed, and are released one by one or together', async () => {
    const client = new RlsClient(server.grpcPort);
    for (let i = 0; i < 3; i++) await client.ask('exports', [descriptor(['customer=ann'])]);
    client.close();
    const inFlight = async () => {
      const answer = await askBuckets(server, { action: 'show', entries: entriesOf('customer=ann') });
      return answer.buckets[0]?.now?.in_flight;
    };
    const page = await scene.open(server.debugPort);
    await showBucket(page, 'exports', { customer: 'ann' });
    await page.getByText('Holds: 3', { exact: true }).click();
    await page
      .getByRole('button', { name: /^Release the hold of/ })
      .first()
      .click();
    await page.getByRole('heading', { name: 'Release the hold?' }).waitFor();
    expect(await inFlight()).toBe(3);
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByRole('heading', { name: 'Done: release the hold' }).waitFor();
    expect(await inFlight()).toBe(2);
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByText('Holds: 2', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Release…', exact: true }).click();
    await page.getByText('2 holds would be released.').waitFor();
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByRole('heading', { name: 'Done: release all holds' }).waitFor();
    expect(await inFlight()).toBe(0);
    await page.getByRole('button', { name: 'Close' }).click();
    await page.locator('#bucket-panel').getByText('In flight: 0 of 5').waitFor();
  });
});
