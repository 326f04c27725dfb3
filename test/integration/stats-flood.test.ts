/*
 * Sends tens of thousands of distinct values and thousands of unknown domains: statistics of every kind, and the memory
 * of the process, stay bounded.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { freePorts } from '../support/process/free-port.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { collectTcp } from '../support/statsd/stats-collectors.js';
import { startWeir } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - { key: each, detailed_metric: true, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - { key: plain, rate_limit: { unit: hour, requests_per_unit: 5 } }
`;
const VALUES = 50_000;
const DOMAINS = 5000;
const SERIES = 1000;
/** Several times the memory of Node.js itself, buckets and series. */
const MOST_KIB = 500 * 1024;

/** Calls `work` with each number from 0 to `count` - 1, several at a time. */
async function inParallel(
  count: number,
  workers: number,
  work: (at: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const run = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: workers }, run));
}

function residentKib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

test('no caller creates more series, or uses more memory, than allowed', async () => {
  const collector = await collectTcp();
  const [port = 0] = await freePorts(1);
  const server = await startWeir({
    policy: POLICY,
    env: {
      METRICS_MAX_SERIES: String(SERIES),
      MEMORY_MAX_BUCKETS: '10000',
      USE_STATSD: 'true',
      STATSD_HOST: '127.0.0.1',
      STATSD_PORT: String(collector.port),
      STATS_FLUSH_INTERVAL: '200ms',
      USE_PROMETHEUS: 'true',
      PROMETHEUS_ADDR: `127.0.0.1:${port}`,
    },
  });
  const client = new RlsClient(server.grpcPort);
  const perCall = 100;
  // Half of the values enter a name through detailed_metric, and half through a limit override.
  await inParallel(VALUES / perCall, 4, (call) =>
    client.ask(
      'd',
      Array.from({ length: perCall }, (_unused, i) => {
        const value = call * perCall + i;
        return i % 2 === 0
          ? descriptor([`each=${value}`])
          : descriptor([`plain=${value}`], { limit: { requestsPerUnit: 7, unit: 3 } });
      }),
    ),
  );
  await inParallel(DOMAINS, 100, (at) => client.ask(`domain-${at}`, [descriptor(['k=v'])]));

  const other = 'ratelimit.service.rate_limit.other';
  await waitFor('all domains to be told', () =>
    collector.sum(`${other}.domain_not_found`) >= DOMAINS - SERIES ? true : undefined,
  );
  const names = new Set(collector.lines().map((line) => line.slice(0, line.indexOf(':'))));
  // The series of a rule has up to seven counters, and these calls count two of them.
  expect(names.size).toBeLessThan(2 * (SERIES + 2) + 100);
  let total = 0;
  for (const line of collector.lines()) {
    const hits = /\.total_hits:(\d+)\|c$/.exec(line);
    if (hits !== null) total += Number(hits[1]);
  }
  expect(total).toBe(VALUES);

  for (const at of [port, server.httpPort]) {
    const { body } = await httpRequest(at, '/metrics');
    expect(
      body.split('\n').filter((line) => line.startsWith('ratelimit_service_rate_limit')).length,
    ).toBeLessThan(2 * (SERIES + 2));
    expect(body.split('\n').filter((line) => line.startsWith('weir_')).length).toBeLessThan(2 * SERIES + 500);
  }
  const { body } = await httpRequest(server.httpPort, '/metrics');
  expect(Number(/^weir_metrics_series_refused_total (\d+)$/m.exec(body)?.[1])).toBeGreaterThanOrEqual(
    DOMAINS - SERIES,
  );
  expect(residentKib(server.process.pid)).toBeLessThan(MOST_KIB);
}, 300_000);
