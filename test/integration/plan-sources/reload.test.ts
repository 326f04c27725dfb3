/* A reload of policies that name a new address of a table. */
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { FilePolicyProvider, type ReloadOutcome } from '../../../src/config/files/file-policy-provider.js';
import { type LoadedPolicies, loadPolicies } from '../../../src/config/files/load-policies.js';
import { PlanMirrors } from '../../../src/config/sources/plan-mirrors.js';
import { TableServer } from '../../support/plans/table-server.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';

let server: TableServer;
let dir: TempDir;
let provider: FilePolicyProvider | undefined;
let outcomes: ReloadOutcome[];

beforeEach(async () => {
  server = await TableServer.start('tenant,calls\nacme,10\n');
  dir = new TempDir();
  outcomes = [];
});
afterEach(async () => {
  provider?.close();
  await server.stop();
  dir.remove();
});

/** Returns a provider of a policy without plans, which loads only on request. */
function provide(firstAnswersMs: number): FilePolicyProvider {
  const places = [dir.write('policy.yaml', 'domain: shop\n')];
  const load = async (previous?: LoadedPolicies): Promise<LoadedPolicies> =>
    loadPolicies(places, { plansCache: dir.join('cache') }, previous);
  const sources = new PlanMirrors({
    directory: dir.join('cache'),
    tokenFile: '',
    pollMs: 1,
    nowMicros: () => 0,
    firstAnswersMs,
    log: () => {},
  });
  const initial = loadPolicies(places);
  provider = new FilePolicyProvider(places, initial, { load, close: () => {} }, { sources });
  provider.onOutcome((outcome) => outcomes.push(outcome));
  return provider;
}

function nameAddress(): void {
  dir.write(
    'policy.yaml',
    `domain: shop
plans: { by: tenant, from: "${server.origin}/plans.csv" }
descriptors: [{ key: tenant, rate_limit: { unit: year, requests_per_unit: { plan: calls, default: 1 } } }]
`,
  );
}

const rowsIn = ({ policySet }: ReloadOutcome): number | undefined => {
  const plans = policySet.domains.get('shop')?.plans;
  return plans?.rowCount;
};

test('waits for the rows of the new address, so that the reload does not fail', async () => {
  const provided = provide(60_000);
  const held: ServerResponse[] = [];
  server.answer = (_request, response) => held.push(response);
  nameAddress();
  const reloaded = provided.reload('change');
  await waitFor('the request', () => held.length === 1);
  expect(outcomes).toEqual([]);
  held[0]?.end(server.table);
  expect(await reloaded).toMatchObject({ kind: 'loaded', errors: [] });
  expect(outcomes.map(rowsIn)).toEqual([1]);
});

test('fails if the new address refuses, or does not answer in time', async () => {
  server.answer = (_request, response) => response.writeHead(503).end();
  const provided = provide(60_000);
  nameAddress();
  expect(await provided.reload('change')).toMatchObject({ kind: 'failed' });
  provided.close();
  server.answer = () => {};
  const other = provide(1);
  nameAddress();
  expect(await other.reload('change')).toMatchObject({ kind: 'failed' });
});

test('the wait ends when weir stops', async () => {
  const provided = provide(60_000);
  server.answer = () => {};
  nameAddress();
  const reloaded = provided.reload('change');
  await waitFor('the request', () => server.requests.length === 1);
  provided.close();
  expect(await reloaded).toMatchObject({ kind: 'unchanged' });
});
