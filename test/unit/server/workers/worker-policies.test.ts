import { beforeEach, expect, test } from '@jest/globals';
import { FilePolicyProvider } from '../../../../src/config/files/file-policy-provider.js';
import { loadPolicies } from '../../../../src/config/files/load-policies.js';
import type { PolicyHandover } from '../../../../src/config/policy-provider.js';
import { ThreadPolicyLoader } from '../../../../src/config/threads/load-thread.js';
import { StartError } from '../../../../src/server/start-error.js';
import { WorkerPolicies } from '../../../../src/server/workers/worker-policies.js';
import { createLogger } from '../../../../src/telemetry/logger.js';
import { closeLater } from '../../../support/process/close-later.js';
import { TempDir } from '../../../support/process/temp-dir.js';
import { waitFor } from '../../../support/process/wait-for.js';
import { settingsOf } from '../../../support/weir/settings.js';

const NOTHING: PolicyHandover = { kept: undefined, rows: new Map(), updates: [] };
const ADDRESS = 'redis://plans.test:6379/rows';

let folder: TempDir;
let loaded: number[];
beforeEach(() => {
  folder = new TempDir();
  loaded = [];
});

const policy = (limit: number | string): string =>
  `domain: d\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: ${limit} } }]\n`;

async function open(handover = NOTHING): Promise<WorkerPolicies> {
  const log = createLogger({ level: 'panic', format: 'json', colour: false });
  const opened = await WorkerPolicies.open(
    settingsOf({ CONFIG_PATH: folder.join('policy.yaml') }),
    log,
    handover,
    (round) => loaded.push(round),
  );
  return closeLater(opened, ({ provider }) => provider.close());
}

/** Returns what the primary process hands over after it has loaded `before`, and then the current file. */
async function handoverAfter(before: string): Promise<PolicyHandover> {
  const places = [folder.write('policy.yaml', before)];
  const primary = new FilePolicyProvider(places, loadPolicies(places), new ThreadPolicyLoader(places));
  folder.write('policy.yaml', policy('many'));
  await primary.reload('signal');
  primary.close();
  return primary.handover();
}

const limit = ({ provider }: WorkerPolicies): unknown => provider.current()?.domains.get('d')?.rules[0]?.rate;

test('loaded policies take effect with the switch', async () => {
  folder.write('policy.yaml', policy(1));
  const policies = await open();
  folder.write('policy.yaml', policy(2));
  const done = policies.load(1, []);
  await waitFor('the load', () => loaded.length === 1);
  expect(limit(policies)).toMatchObject({ requestsPerUnit: 1 });
  policies.switchTo(1);
  await done;
  expect(limit(policies)).toMatchObject({ requestsPerUnit: 2 });
  expect(new Set(loaded)).toEqual(new Set([1]));
});

test('policies that are loaded after the switch take effect at once, and unchanged ones need none', async () => {
  folder.write('policy.yaml', policy(1));
  const policies = await open();
  folder.write('policy.yaml', policy(2));
  policies.switchTo(3);
  await policies.load(3, []);
  expect(limit(policies)).toMatchObject({ requestsPerUnit: 2 });
  await policies.load(4, []);
  expect(loaded.at(-1)).toBe(4);
});

test('a worker that starts while the file is invalid has the policies in effect', async () => {
  const policies = await open(await handoverAfter(policy(7)));
  expect(limit(policies)).toMatchObject({ requestsPerUnit: 7 });
  folder.write('policy.yaml', policy(8));
  policies.switchTo(1);
  await policies.load(1, []);
  expect(limit(policies)).toMatchObject({ requestsPerUnit: 8 });
});

test('a worker does not start with invalid files that the primary process has not seen yet', async () => {
  folder.write('policy.yaml', policy('many'));
  await expect(open()).rejects.toThrow(StartError);
});

test('rows of a table in Redis come from the primary process', async () => {
  folder.write(
    'policy.yaml',
    `domain: d\nplans: { by: t, from: "${ADDRESS}", define: { free: { n: 1 } } }\n` +
      'descriptors: [{ key: t, rate_limit: { unit: day, requests_per_unit: { plan: n, default: 5 } } }]\n',
  );
  const row = (name: string): Buffer => Buffer.from(`${JSON.stringify([name, 'free'])}\n`);
  const policies = await open({ ...NOTHING, rows: new Map([[ADDRESS, [row('one')]]]) });
  const rowCount = (): unknown => policies.provider.current()?.domains.get('d')?.plans?.rowCount;
  expect(rowCount()).toBe(1);
  policies.addRows(ADDRESS, 0, row('one'));
  policies.addRows(ADDRESS, 1, row('two'));
  policies.switchTo(1);
  await policies.load(1, []);
  expect(rowCount()).toBe(2);
  // The rows stay for the next load.
  policies.switchTo(2);
  await policies.load(2, []);
  expect(rowCount()).toBe(2);
});
