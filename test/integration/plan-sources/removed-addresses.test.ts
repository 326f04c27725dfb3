/* What an installation of the first edition finds: tables over HTTP, and the copies of tables on disk. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openPolicies } from '../../../src/server/policies/open-policies.js';
import { readSettings } from '../../../src/server/settings/read-settings.js';
import { StartError } from '../../../src/server/start-error.js';
import { openPoliciesOf } from '../../support/policy/open-policies.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';

let dir: TempDir;
let opened: Awaited<ReturnType<typeof openPoliciesOf>> | undefined;
beforeEach(() => {
  dir = new TempDir();
  dir.write('good.yaml', 'domain: good\ndescriptors: [{ key: k }]\n');
  dir.write('customers.csv', 'tenant,calls\nacme,10\n');
});
afterEach(() => {
  opened?.provider.close();
  opened = undefined;
});

const writePolicy = (from: string): string =>
  dir.write(
    'shop.yaml',
    `domain: shop\nplans: { by: tenant, from: "${from}" }\n` +
      'descriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: { plan: calls, default: 1 } } }]\n',
  );
const open = () => openPoliciesOf({ CONFIG_PATH: dir.path }, openPolicies);

test.each(['https', 'http'])(
  'a start with a table over %s is refused, beside valid files',
  async (scheme) => {
    writePolicy(`${scheme}://billing.internal/plans.csv`);
    const error = await open().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StartError);
    expect((error as StartError).lines.join('\n')).toContain(
      'shop.yaml:2:28: plans.from: weir does not read tables over HTTP any more; let a job write the table to a file',
    );
  },
);

test('a reload keeps the previous policy and its rows', async () => {
  writePolicy('customers.csv');
  opened = await open();
  const { provider } = opened;
  writePolicy('https://billing.internal/plans.csv');
  provider.reload('signal');
  await waitFor('the reload', () => provider.errors().length > 0);
  expect(provider.domains()).toMatchObject([{ state: 'ok' }, { domain: 'shop', state: 'kept' }]);
  expect(provider.current()?.domains.get('shop')?.plans?.rowCount).toBe(1);
});

test('PLANS_CACHE_PATH causes a warning', () => {
  const settings = readSettings({ PLANS_CACHE_PATH: '/var/lib/weir' });
  expect(settings).toMatchObject({
    ok: true,
    notes: [
      expect.stringMatching(/^PLANS_CACHE_PATH: weir keeps no copies of tables of plans on disk any more/),
    ],
  });
});
