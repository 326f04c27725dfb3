/* Tests what the page shows about limits that classes of callers share. */
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { PageScene } from '../support/page/scene.js';
import { goTo, showBucket } from '../support/page/views.js';
import { descriptor } from '../support/policy/decider.js';
import { optionalToolPath } from '../support/process/tools.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: reports
descriptors:
  - key: customer
    descriptors:
      - key: class
        rate_limit:
          token_bucket: { max_tokens: 10, fill_interval: 1000h }
          priorities: { by: class, keep: { batch: 40%, interactive: 0 } }
`;

const describePage = optionalToolPath('chromium') === undefined ? describe.skip : describe;
let scene: PageScene;
let server: WeirServer;
beforeAll(async () => {
  if (optionalToolPath('chromium') === undefined) return;
  scene = await PageScene.begin();
  server = await startWeir({ policy: POLICY });
  const client = new RlsClient(server.grpcPort);
  const ask = (...texts: string[]) => client.ask('reports', [descriptor(['customer=ann', ...texts])]);
  for (let i = 0; i < 7; i++) await ask('class=batch');
  await ask('class=interactive');
  // Without the entry, the class is batch, too.
  await ask();
  client.close();
});
afterEach(async () => expect((await scene?.close()) ?? []).toEqual([]));

describePage('the page', () => {
  test('shows the classes of a limit, what a class can use, and who is denied', async () => {
    const page = await scene.open(server.debugPort);
    await goTo(page, 'rules');
    await page
      .getByText('classes by class: batch keeps 40%, interactive keeps 0, others are batch', {
        exact: true,
      })
      .waitFor();
    await showBucket(page, 'reports', { customer: 'ann', class: 'batch' });
    const bucket = page.locator('#bucket-panel');
    await bucket.getByText('The class batch can use 6 of 10, and leaves 4 to other classes.').waitFor();
    await expect(bucket.innerText()).resolves.toMatch(/customer\/class\s+3\s+10/);
    await goTo(page, 'top');
    await page.getByRole('button', { name: /^Show the bucket of customer=ann,? class=batch/ }).waitFor();
    await expect(page.locator('#top-rows').innerText()).resolves.toMatch(/class=batch/);
  });
});
