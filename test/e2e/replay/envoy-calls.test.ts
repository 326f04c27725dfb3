/*
 * Compares the descriptors that a real Envoy sends with those that the replay derives from Envoy's configuration and
 * its access log of the same requests.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CODE, type Descriptor } from '../../../src/codec/messages.js';
import { missingValues } from '../../../src/replay/envoy/log-fields.js';
import { type EnvoyConfig, readEnvoy } from '../../../src/replay/envoy/read-envoy.js';
import type { RequestCalls } from '../../../src/replay/envoy/route-table.js';
import { Columns } from '../../../src/replay/log/columns.js';
import type { LineValues, LogFormat } from '../../../src/replay/log/log-format.js';
import { startEnvoyWith } from '../../support/envoy/envoy.js';
import { type RlsServer, startRlsServer } from '../../support/grpc/rls-server.js';
import { freePorts } from '../../support/process/free-port.js';
import { httpRequest } from '../../support/process/http-client.js';
import { waitFor } from '../../support/process/wait-for.js';
import { lineValues } from '../../support/replay/read-line.js';
import { bootstrap, REQUESTS } from '../../support/replay/varied-routes.js';

const TOKEN = 'token-1';
const folder = mkdtempSync(join(tmpdir(), 'weir-replay-'));
const log = join(folder, 'access.json');
const columns = new Columns();
let port = 0;
let upstream: Server;
let service: RlsServer;
let envoy: { stop(): Promise<unknown> };
let config: EnvoyConfig;
let read: (line: string) => LineValues | string;

beforeAll(async () => {
  upstream = createServer((_request, response) => {
    response.setHeader('x-cost', '7').end('words');
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  service = await startRlsServer(() => ({
    overallCode: CODE.OK,
    statuses: [],
    responseHeadersToAdd: [],
    requestHeadersToAdd: [],
    rawBody: undefined,
    dynamicMetadata: { hold: TOKEN },
  }));
  const [first = 0, adminPort = 0] = await freePorts(2);
  port = first;
  const upstreamPort = (upstream.address() as AddressInfo).port;
  const text = bootstrap({ port, adminPort, upstreamPort, servicePort: service.port, log });
  config = readEnvoy([{ name: 'envoy.yaml', bytes: Buffer.from(text) }], columns);
  read = lineValues(config.formats[0] as LogFormat, columns.operators);
  envoy = await startEnvoyWith(text, adminPort, 1);
}, 60_000);

afterAll(async () => {
  await envoy?.stop();
  upstream?.closeAllConnections();
  upstream?.close();
  await service?.server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Returns a call as text that can be compared and sorted. */
function asText(domain: string, descriptors: readonly Descriptor[]): string {
  const texts = descriptors.map(({ entries, limit, hitsAddend, isNegativeHits }) => {
    const pairs = entries.map(({ key, value }) => `${key}=${key === 'hold' ? TOKEN : value}`).join(', ');
    const override = limit === undefined ? '' : ` limit ${limit.requestsPerUnit}/${limit.unit}`;
    return `(${pairs})${override} hits ${hitsAddend}${isNegativeHits ? ' given back' : ''}`;
  });
  return [domain, ...texts].join('\n  ');
}

/** Returns the calls at the start and at the end. Envoy does not order the calls at the end. */
function allCalls(calls: readonly RequestCalls[]): readonly string[] {
  return calls
    .flatMap(({ domain, start, end }) => [
      ...(start.length > 0 ? [asText(domain, start)] : []),
      ...(end.length > 0 ? [asText(domain, end)] : []),
    ])
    .sort();
}

test('the configuration can be replayed, and its log has every value', () => {
  expect(config.problems.flatMap(({ errors }) => errors)).toEqual([]);
  expect(missingValues(config.needs, config.formats[0] as LogFormat)).toEqual([]);
});

test('derives the descriptors that Envoy sent', async () => {
  const replayed: object[] = [];
  const sent: object[] = [];
  for (const [index, { path, headers = {} }] of REQUESTS.entries()) {
    const before = service.requests.length;
    await httpRequest(port, path, { headers });
    const line = await waitFor(`the log of ${path}`, () =>
      existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1)[index] : undefined,
    );
    const values = read(line);
    expect(values).toBeInstanceOf(Array);
    const expected = allCalls(config.callsOf(values as LineValues));
    // Missing calls fail the comparison. Additional calls count for the next request, and fail its comparison.
    const arrived = () => service.requests.length - before >= expected.length || undefined;
    await waitFor('the calls', arrived).catch(() => {});
    const request = `${path} ${JSON.stringify(headers)}`;
    replayed.push({ request, calls: expected });
    const calls = service.requests
      .slice(before)
      .map(({ domain, descriptors }) => asText(domain, descriptors));
    sent.push({ request, calls: calls.sort() });
  }
  expect(replayed).toEqual(sent);
}, 120_000);
