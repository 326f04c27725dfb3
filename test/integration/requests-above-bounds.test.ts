/*
 * Sends requests above each bound over the wire. None may get an error, because Envoy then allows the request by
 * default, and none may bypass a limit.
 */
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { createClientCodec } from '../../src/codec/client-codec.js';
import { CODE, type Descriptor } from '../../src/codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../src/codec/rls-definition.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { openSession, post, prefixed } from '../support/h2/http2-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { STACKS } from '../support/weir/stacks.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const LIMIT = 'rate_limit: { unit: hour, requests_per_unit: 100000 }';
const DESCRIPTORS = `
  - { key: tenant, ${LIMIT} }
  - key: both
    rate_limits: [{ unit: hour, requests_per_unit: 100000 }, { unit: day, requests_per_unit: 100000 }]
  - key: three
    rate_limits:
      - { unit: minute, requests_per_unit: 100000 }
      - { unit: hour, requests_per_unit: 100000 }
      - { unit: day, requests_per_unit: 100000 }
  - { key: path, value_regex: '.*/admin/.*', ${LIMIT} }
  - { key: slot, rate_limit: { concurrency: { max: 1 } } }
`;
const plansOf = (phase: string): string => `phase: monitoring
plans: { by: tenant, default: free, define: { free: { n: 5 }, paying: { n: 9${phase} } } }
descriptors:
  - { key: tenant, rate_limit: { unit: hour, requests_per_unit: { plan: n } } }
`;
const POLICIES = {
  'monitors-plans.yaml': `domain: monitors-plans\n${plansOf('')}`,
  'enforces-a-plan.yaml': `domain: enforces-a-plan\n${plansOf(', phase: active')}`,
  'enforces.yaml': `domain: enforces\ndescriptors:${DESCRIPTORS}`,
  'monitors.yaml': `domain: monitors\nphase: monitoring\ndescriptors:${DESCRIPTORS}`,
};

function times(count: number, texts: readonly string[]): readonly Descriptor[] {
  return Array.from({ length: count }, () => descriptor(texts));
}

/** Bytes of a request in addition to the value of its entry. */
const OVERHEAD_BYTES =
  createClientCodec().encodeRequest({
    domain: 'enforces',
    descriptors: [descriptor([`tenant=${'x'.repeat(60_000)}`])],
    hitsAddend: 0,
  }).length - 60_000;

const REQUESTS: Readonly<Record<string, readonly [why: string, descriptors: readonly Descriptor[]]>> = {
  'of nearly 4 MiB': ['request_bytes', [descriptor([`tenant=${'x'.repeat(4_194_000)}`])]],
  'of 64 KiB and a byte': [
    'request_bytes',
    [descriptor([`tenant=${'x'.repeat(65_536 + 1 - OVERHEAD_BYTES)}`])],
  ],
  'with 129 descriptors': ['descriptors', times(129, ['tenant=a'])],
  'with 1,001 entries': ['entries', [...times(100, Array(10).fill('tenant=a')), descriptor(['tenant=a'])]],
  'with 257 limits': ['limits', [...times(127, ['both=a']), descriptor(['three=a'])]],
  'with 5 KiB before a regular expression': ['regex_value', [descriptor([`path=${'x'.repeat(5120)}`])]],
};

describe.each(STACKS)('on the stack %s', (stack) => {
  const folder = new TempDir();
  let server: WeirServer;
  let client: RlsClient;

  beforeAll(async () => {
    for (const [name, text] of Object.entries(POLICIES)) folder.write(name, text);
    server = await startWeir({ env: { GRPC_TRANSPORT: stack, CONFIG_PATH: folder.path } });
    client = new RlsClient(server.grpcPort);
  });

  async function givenUp(domain: string, why: string): Promise<number> {
    const { body } = await httpRequest(server.httpPort, '/metrics');
    const series = new RegExp(
      `^weir_requests_given_up_total\\{domain="${domain}",reason="${why}"\\} (\\d+)$`,
      'm',
    );
    return Number(series.exec(body)?.[1] ?? 0);
  }

  describe.each(Object.entries(REQUESTS))('a request %s', (_name, [why, descriptors]) => {
    test.each([
      ['enforces', CODE.OVER_LIMIT],
      ['monitors', CODE.OK],
    ] as const)('in a domain that %s', async (domain, overallCode) => {
      const before = await givenUp(domain, why);
      const reply = await client.ask(domain, descriptors);
      expect(reply).toMatchObject({ code: STATUS.OK, response: { overallCode, statuses: [] } });
      expect(await givenUp(domain, why)).toBe(before + 1);
    });
  });

  test.each([
    ['monitors-plans', CODE.OK],
    ['enforces-a-plan', CODE.OVER_LIMIT],
  ] as const)('the phases of the rows of plans count in the domain %s', async (domain, overallCode) => {
    const reply = await client.ask(domain, times(129, ['tenant=a']));
    expect(reply).toMatchObject({ code: STATUS.OK, response: { overallCode, statuses: [] } });
  });

  test.each(['descriptors', 'entries'])(
    'a body of /json above the bound %s has the same answer',
    async (why) => {
      const [, descriptors] = Object.values(REQUESTS).find(([kind]) => kind === why) ?? ['', []];
      for (const [domain, status] of [
        ['enforces', 429],
        ['monitors', 200],
      ] as const) {
        const before = await givenUp(domain, why);
        const body = JSON.stringify({ domain, descriptors });
        const response = await fetch(`http://127.0.0.1:${server.httpPort}/json`, { method: 'POST', body });
        expect(response.status).toBe(status);
        expect(await givenUp(domain, why)).toBe(before + 1);
      }
    },
  );

  /** Sends a request of slightly more than `bytes`, compressed to a few kilobytes. */
  async function postCompressed(bytes: number) {
    const message = createClientCodec().encodeRequest({
      domain: 'enforces',
      descriptors: [descriptor([`tenant=${'x'.repeat(bytes)}`])],
      hitsAddend: 0,
    });
    const framed = prefixed(gzipSync(message));
    framed[0] = 1;
    const session = await openSession(server.grpcPort);
    const end = await post(session, SHOULD_RATE_LIMIT_PATH, framed, { 'grpc-encoding': 'gzip' });
    session.destroy();
    return end;
  }

  test('a message that is too long only after decompression has the same answer', async () => {
    const before = await givenUp('enforces', 'request_bytes');
    const end = await postCompressed(1_000_000);
    expect(end.grpcStatus).toBe('0');
    expect(createClientCodec().decodeResponse(end.body.subarray(5))).toMatchObject({
      overallCode: CODE.OVER_LIMIT,
      statuses: [],
    });
    expect(await givenUp('enforces', 'request_bytes')).toBe(before + 1);
  });

  // grpc-js inflates messages itself, and refuses those above its bound.
  test('GRPC_MAX_MESSAGE_BYTES applies to a message after decompression only on grpc-js', async () => {
    const end = await postCompressed(4_200_000);
    const status = stack === 'grpc-js' ? STATUS.RESOURCE_EXHAUSTED : STATUS.OK;
    expect(end.grpcStatus).toBe(String(status));
  });

  test('an end of a hold in a message that is too long frees its slot', async () => {
    const slot = descriptor(['slot=a']);
    const start = await client.ask('enforces', [slot]);
    expect(start.response?.overallCode).toBe(CODE.OK);
    expect((await client.ask('enforces', [slot])).response?.overallCode).toBe(CODE.OVER_LIMIT);
    const token = String(start.response?.dynamicMetadata?.['hold']);
    await client.ask('enforces', [descriptor([`hold=${token}`, `tenant=${'x'.repeat(1_000_000)}`])]);
    expect((await client.ask('enforces', [slot])).response?.overallCode).toBe(CODE.OK);
  });

  test('the log names the bound and the domain at a limited rate, without values', () => {
    const lines = server.log().filter(({ msg }) => /without a decision/.test(String(msg)));
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThan(20);
    expect(lines[0]).toMatchObject({ why: expect.any(String), domain: expect.any(String) });
    expect(JSON.stringify(lines)).not.toMatch(/x{30}/);
  });
});
