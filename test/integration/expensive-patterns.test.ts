/*
 * Sends values that are expensive for regular expressions over many connections: no call may exceed its deadline, and
 * other callers must be served.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { RlsClient, type RlsReply } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const PATTERNS = Array.from({ length: 10 }, (_, i) => `      - '.*a.{400}b${i}'`).join('\n');
const POLICY = `domain: d
descriptors:
  - key: path
    value_regex:
${PATTERNS}
    rate_limit: { unit: hour, requests_per_unit: 1000000 }
  - { key: path, rate_limit: { unit: hour, requests_per_unit: 1000000 } }
  - { key: tenant, rate_limit: { unit: hour, requests_per_unit: 1000000 } }
`;
/** Longer than a second, because the machine can be busy. */
const TIMEOUT_MS = 10_000;
const CONNECTIONS = 16;
const CALLS = 30;

let state = 1;
/** Returns letters in an order that rarely repeats, so that nearly every state of the automata differs. */
function costly(length: number): string {
  let text = '';
  while (text.length < length) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    text += 'ac'[(state >> 16) & 1];
  }
  return text;
}

function codesOf(replies: readonly RlsReply[]): ReadonlySet<string> {
  return new Set(replies.map(({ code, response }) => `${code} ${response?.overallCode}`));
}

describe('costly requests', () => {
  let server: WeirServer;
  let clients: readonly RlsClient[];

  beforeAll(async () => {
    server = await startWeir({ policy: POLICY });
    clients = Array.from({ length: CONNECTIONS + 1 }, () => new RlsClient(server.grpcPort));
  });

  afterAll(async () => {
    for (const client of clients) client.close();
    await server.stop();
  });

  test('from many connections are all answered in time, and never bypass a limit', async () => {
    const [innocent, ...hostile] = clients as [RlsClient, ...RlsClient[]];
    const flood = hostile.flatMap((client) =>
      Array.from({ length: CALLS }, () =>
        client.ask('d', [descriptor([`path=${costly(3000)}`])], { timeoutMs: TIMEOUT_MS }),
      ),
    );
    let isOver = false;
    const innocentReplies: RlsReply[] = [];
    const others = (async () => {
      while (!isOver || innocentReplies.length === 0) {
        innocentReplies.push(
          await innocent.ask('d', [descriptor(['tenant=acme'])], { timeoutMs: TIMEOUT_MS }),
        );
      }
    })();
    const replies = await Promise.all(flood);
    isOver = true;
    await others;
    // Calls can fail while the automata are being built.
    for (const one of codesOf(replies)) {
      expect([`${STATUS.OK} ${CODE.OK}`, `${STATUS.OK} ${CODE.OVER_LIMIT}`]).toContain(one);
    }
    expect(
      replies.filter(({ response }) => response?.overallCode === CODE.OVER_LIMIT).length,
    ).toBeGreaterThan(replies.length / 2);
    expect(codesOf(innocentReplies)).toEqual(new Set([`${STATUS.OK} ${CODE.OK}`]));
  });

  test('of the maximum length in Envoy, and messages of the maximum size, are answered in time', async () => {
    const replies = await Promise.all(
      clients.flatMap((client) => [
        client.ask('d', [descriptor([`path=${costly(60_000)}`])], { timeoutMs: TIMEOUT_MS }),
        client.ask('d', [descriptor([`tenant=${'x'.repeat(200_000)}`])], { timeoutMs: TIMEOUT_MS }),
        client.ask('unknown', [descriptor([`tenant=${'x'.repeat(200_000)}`])], { timeoutMs: TIMEOUT_MS }),
      ]),
    );
    for (const one of codesOf(replies)) {
      expect([`${STATUS.OK} ${CODE.OK}`, `${STATUS.OK} ${CODE.OVER_LIMIT}`]).toContain(one);
    }
  });

  test('are counted, and logged at a limited rate without their values', async () => {
    const { body } = await httpRequest(server.httpPort, '/metrics');
    expect(body).toMatch(/^weir_(match_budget_exceeded|requests_given_up)_total\{domain="d".*\} [1-9]/m);
    const lines = server.log().filter(({ domain }) => domain === 'd');
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThan(20);
    expect(JSON.stringify(lines)).not.toMatch(/[ac]{30}/);
  });
});
