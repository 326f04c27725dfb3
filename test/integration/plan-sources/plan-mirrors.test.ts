/* The log and the metrics while weir polls tables of plans. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { PlanMirrors } from '../../../src/config/sources/plan-mirrors.js';
import { TableServer } from '../../support/plans/table-server.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';

let server: TableServer;
let dir: TempDir;
let mirrors: PlanMirrors;
let logged: string[];
let nowMicros: number;

beforeEach(async () => {
  server = await TableServer.start('tenant,burst\nacme,10\n');
  dir = new TempDir();
  logged = [];
  nowMicros = 0;
  mirrors = new PlanMirrors({
    directory: dir.join('cache'),
    tokenFile: '',
    pollMs: 1,
    nowMicros: () => nowMicros,
    log: (_level, message) => logged.push(message),
  });
});
afterEach(async () => {
  mirrors.close();
  await server.stop();
  dir.remove();
});

/** Waits for the answers to a number of further requests. */
async function furtherRequests(count: number): Promise<void> {
  const enough = server.requests.length + count;
  await waitFor(`${count} requests`, () => server.requests.length > enough);
}

test('logs each reason for failures once, until the table can be read again', async () => {
  let at = 0;
  server.answer = (_request, response) => response.writeHead([500, 503][at++ % 2] as number).end();
  await mirrors.follow([`${server.origin}/plans.csv`]);
  await furtherRequests(10);
  const reasons = ['status 500', 'status 503'].map((reason) => expect.stringContaining(reason));
  expect(logged).toEqual(reasons);
  server.answer = (request, response) => server.honest(request, response);
  await waitFor('the table', () => logged.length > 2);
  await furtherRequests(2);
  expect(logged).toEqual([...reasons, expect.stringContaining('can be read again')]);
  server.answer = (_request, response) => response.writeHead(500).end();
  await waitFor('the next failure', () => logged.length > 3);
});

test('addresses that differ only in their queries are one source of the metrics, with the oldest rows', async () => {
  const refused = `${server.origin}/plans?b=secret#.csv`;
  await mirrors.follow([`${server.origin}/plans?a=secret#.csv`, refused]);
  server.answer = (request, response) =>
    request.url?.includes('b=') ? response.writeHead(500).end() : server.honest(request, response);
  await furtherRequests(4);
  nowMicros = 7_000_000;
  await furtherRequests(4);
  expect([...mirrors.ages()]).toEqual([[`${server.origin}/plans`, 7]]);
  expect([...mirrors.failures()]).toMatchObject([[`${server.origin}/plans`, 'status', expect.anything()]]);
});
