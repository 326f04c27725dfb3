/* Tests hostile requests for views of policies with 800 and 4,000 rules, and a log that is not read. */
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { freePorts } from '../support/process/free-port.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, WEIR_MAIN } from '../support/weir/weir.js';

/** Number of rules of a policy that the main thread renders, and of one that a thread renders. */
const FEW_RULES = 800;
const RULES = 4000;

function policyOf(rules: number): string {
  const lines = ['domain: d', 'descriptors:'];
  for (let rule = 0; rule < rules; rule++) {
    lines.push(`  - { key: k, value: value-${rule}, rate_limit: { unit: hour, requests_per_unit: 5 } }`);
  }
  return `${lines.join('\n')}\n`;
}

test('forty concurrent requests are answered in full, and other requests meanwhile', async () => {
  const weir = await startWeir({ policy: policyOf(FEW_RULES) });
  const client = new RlsClient(weir.grpcPort);
  const ask = (rule: number) => client.ask('d', [descriptor([`k=value-${rule}`])]);
  for (let rule = 0; rule < 200; rule++) await ask(rule);
  for (const [port, path, line] of [
    [weir.httpPort, '/metrics', 'weir_decisions_total{domain="d",rule="k=value-199",code="OK"} 1'],
    [weir.debugPort, '/stats', 'ratelimit.service.rate_limit.d.k_value-199.total_hits: 1'],
    [weir.debugPort, '/rlconfig', `d.k_value-${FEW_RULES - 1}: unit=HOUR requests_per_unit=5`],
    [weir.debugPort, '/rlconfig?format=tree', `k=value-${FEW_RULES - 1}: window: 5 per hour`],
    [weir.debugPort, '/rlconfig?format=json', `"full_key": "d.k_value-${FEW_RULES - 1}"`],
    [weir.httpPort, '/healthcheck?detail', '"domain": "d"'],
  ] as const) {
    const answers = Array.from({ length: 40 }, () => httpRequest(port, path));
    expect((await httpRequest(weir.httpPort, '/healthcheck')).status).toBe(200);
    await ask(0);
    for (const { status, headers, body } of await Promise.all(answers)) {
      expect([path, status, body.includes(line)]).toEqual([path, 200, true]);
      expect(headers).toContainEqual(['content-length', String(Buffer.byteLength(body))]);
    }
  }
  client.close();
  expect((await weir.stop()).code).toBe(0);
}, 180_000);

test('a client that never reads its answer delays no other client', async () => {
  const weir = await startWeir({ policy: policyOf(RULES) });
  const sockets = Array.from({ length: 20 }, () => connect(weir.debugPort, '127.0.0.1').pause());
  for (const socket of sockets) {
    socket.on('error', () => {});
    socket.write('GET /rlconfig?format=json HTTP/1.1\r\nHost: localhost\r\n\r\n');
  }
  const { status, body } = await httpRequest(weir.debugPort, '/rlconfig?format=json');
  expect([status, JSON.parse(body).domains[0].policy.rules.length]).toEqual([200, RULES]);
  for (const socket of sockets) socket.destroy();
  expect((await weir.stop()).code).toBe(0);
});

test('an unread log stops no decision, and missing lines are counted', async () => {
  const [grpcPort = 0, httpPort = 0, debugPort = 0] = await freePorts(3);
  const child = spawn(process.execPath, [WEIR_MAIN, 'serve'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env['PATH'],
      GRPC_HOST: '127.0.0.1',
      HOST: '127.0.0.1',
      DEBUG_HOST: '127.0.0.1',
      GRPC_PORT: String(grpcPort),
      PORT: String(httpPort),
      DEBUG_PORT: String(debugPort),
      LOG_LEVEL: 'debug',
      LOG_FORMAT: 'json',
      ...(process.env['WEIR_TEST_RUN'] !== undefined && { WEIR_TEST_RUN: process.env['WEIR_TEST_RUN'] }),
    },
  });
  try {
    await waitFor('weir', async () =>
      (await httpRequest(httpPort, '/healthcheck').catch(() => undefined))?.status === 200 ? true : undefined,
    );
    const client = new RlsClient(grpcPort);
    const entries = Array.from({ length: 40 }, (_entry, at) => `key-${at}=${'v'.repeat(1000)}`);
    const ask = () => client.ask('none', [descriptor(entries)]);
    const dropped = async (): Promise<number> => {
      const { body } = await httpRequest(httpPort, '/metrics');
      return Number(/^weir_log_lines_dropped_total (\d+)$/m.exec(body)?.[1]);
    };
    let calls = 0;
    // Unknown domains are logged, too; a line has eight kilobytes.
    for (; calls < 2000 && (await dropped()) === 0; calls += 100) {
      await Promise.all(Array.from({ length: 100 }, ask));
    }
    expect(await dropped()).toBeGreaterThan(0);
    await Promise.all(Array.from({ length: 100 }, ask));
    client.close();
    const missing = await dropped();
    let log = '';
    child.stdout?.setEncoding('utf8').on('data', (text) => {
      log += String(text);
    });
    await waitFor(
      'the log line about lost lines',
      async () => log.includes('log lines were dropped') || undefined,
    );
    expect(log).toContain(`"dropped":${missing}`);
    child.kill('SIGTERM');
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect(code).toBe(0);
    const lines = log.trimEnd().split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(16_384);
    for (const line of lines) JSON.parse(line);
    expect(lines.at(-1)).toContain('drained');
    const decisions = lines.map((line) => JSON.parse(line)).filter((line) => line['@message'] === 'decision');
    expect(decisions.length + missing).toBe(calls + 100);
    expect(decisions[0].moreEntries).toBe(8);
  } finally {
    child.kill('SIGKILL');
  }
});
