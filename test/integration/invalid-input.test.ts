/* Sends invalid and extreme input over a real connection, after which the server must still serve. */
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClientCodec } from '../../src/codec/client-codec.js';
import { CODE, type Descriptor } from '../../src/codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../src/codec/rls-definition.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { openSession, openStream, streamEnd } from '../support/h2/http2-client.js';
import { descriptor } from '../support/policy/decider.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - key: k
    rate_limit: { token_bucket: { max_tokens: 100000, fill_interval: 1h } }
`;
const codec = createClientCodec();

describe.each(['memory', 'Redis'])('with buckets in %s', (kind) => {
  let redis: RedisServer | undefined;
  let server: WeirServer;
  let client: RlsClient;

  beforeAll(async () => {
    if (kind === 'Redis') redis = await startRedis();
    const env = redis === undefined ? {} : { REDIS_URL: `127.0.0.1:${redis.port}` };
    server = await startWeir({ policy: POLICY, env: { ...env, GRPC_MAX_MESSAGE_BYTES: '1000000' } });
    client = new RlsClient(server.grpcPort);
  });
  afterEach(async () => {
    const reply = await client.ask('d', [descriptor(['k=after'])]);
    expect(reply).toMatchObject({ code: STATUS.OK, response: { overallCode: CODE.OK } });
  });

  test('an empty body', async () => {
    expect(await client.send(new Uint8Array())).toMatchObject({
      code: STATUS.INVALID_ARGUMENT,
      details: 'rate limit domain must not be empty',
    });
  });

  test('missing domain, descriptors or key of an entry', async () => {
    expect(await client.ask('', [descriptor(['k=v'])])).toMatchObject({ code: STATUS.INVALID_ARGUMENT });
    expect(await client.ask('d', [])).toMatchObject({
      code: STATUS.INVALID_ARGUMENT,
      details: 'rate limit descriptor list must not be empty',
    });
    expect(await client.ask('d', [descriptor(['=v'])])).toMatchObject({
      code: STATUS.INVALID_ARGUMENT,
      details: 'descriptors[0].entries[0].key must not be empty',
    });
  });

  test('an unknown method, or a wrong content type', async () => {
    const session = await openSession(server.grpcPort);
    const unknown = openStream(session, '/envoy.service.ratelimit.v3.RateLimitService/Nothing');
    unknown.end(Buffer.alloc(5));
    expect(await streamEnd(unknown)).toMatchObject({ grpcStatus: String(STATUS.UNIMPLEMENTED) });
    const wrong = openStream(session, SHOULD_RATE_LIMIT_PATH, { 'content-type': 'application/json' });
    wrong.end('{}');
    expect(await streamEnd(wrong)).toMatchObject({ httpStatus: 415 });
    session.destroy();
  });

  test('bytes that are not a message', async () => {
    for (const bytes of [
      [0x0a, 0x05, 0x61],
      [0x12, 0xff, 0xff, 0xff, 0xff, 0x0f],
      [0xff, 0xff, 0xff],
      [0x0b],
    ]) {
      expect(await client.send(Uint8Array.from(bytes))).toMatchObject({ code: STATUS.INVALID_ARGUMENT });
    }
  });

  test('a message above the size limit', async () => {
    const reply = await client.ask('d', [descriptor([`k=${'x'.repeat(1_000_000)}`])]);
    expect(reply.code).toBe(STATUS.RESOURCE_EXHAUSTED);
  });

  test('128 descriptors are decided together', async () => {
    const many: Descriptor[] = Array.from({ length: 128 }, (_, index) => descriptor([`k=${index % 64}`]));
    const reply = await client.ask('d', many);
    expect(reply.response?.statuses.map(({ limitRemaining }) => limitRemaining)).toEqual(
      many.map((_, index) => 99_999 - Math.floor(index / 64)),
    );
  });

  test('values of 60 KB have their own buckets', async () => {
    const long = 'é'.repeat(30_000);
    const left = async (value: string) =>
      (await client.ask('d', [descriptor([`k=${value}`])])).response?.statuses[0]?.limitRemaining;
    expect(await left(long)).toBe(99_999);
    expect(await left(`${long}!`)).toBe(99_999);
    expect(await left(long)).toBe(99_998);
  });

  test('bytes that are not UTF-8 are decided as U+FFFD', async () => {
    const raw = Buffer.from(
      codec.encodeRequest({ domain: 'd', descriptors: [descriptor(['k=QQ'])], hitsAddend: 0 }),
    );
    raw[raw.indexOf('QQ')] = 0xff;
    raw[raw.indexOf('Q')] = 0xfe;
    expect((await client.send(raw)).response?.statuses[0]?.limitRemaining).toBe(99_999);
    const same = await client.ask('d', [descriptor(['k=\ufffd\ufffd'])]);
    expect(same.response?.statuses[0]?.limitRemaining).toBe(99_998);
  });

  test('more hits than any bucket holds, up to 64 bits', async () => {
    // Replaces a smaller value of the same length with hits_addend { value: 2^64-1 }.
    const raw = Buffer.from(
      codec.encodeRequest({
        domain: 'd',
        descriptors: [descriptor(['k=hits'], { hitsAddend: 1 })],
        hitsAddend: 0,
      }),
    );
    const huge = Buffer.from([0x1a, 0x0b, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    const at = raw.lastIndexOf(Buffer.from([0x1a, 0x02, 0x08, 0x01]));
    const message = Buffer.concat([raw.subarray(0, at), huge, raw.subarray(at + 4)]);
    message[4] = (message[4] as number) + huge.length - 4; // length of the descriptor
    const reply = await client.send(message);
    expect(reply.response?.statuses[0]).toMatchObject({ code: CODE.OVER_LIMIT, limitRemaining: 100_000 });
  });

  test('keys and values that look like keys of the store', async () => {
    const values = ['a:b', 'a', '1:a', '{x}', '*', '', '\n', '\0', '🙂'];
    for (const value of values) {
      const reply = await client.ask('d', [descriptor([`k=${value}`])]);
      expect([value, reply.response?.statuses[0]?.limitRemaining]).toEqual([value, 99_999]);
    }
  });
});

test('a deadline that becomes a negative delay on the plain stack is reported in the log only', async () => {
  const server = await startWeir({ policy: POLICY, env: { GRPC_TRANSPORT: 'grpc-js' } });
  const session = await openSession(server.grpcPort);
  openStream(session, SHOULD_RATE_LIMIT_PATH, { 'grpc-timeout': '600H' });
  await waitFor('the line', () => server.log().find(({ name }) => name === 'TimeoutNegativeWarning'));
  session.destroy();
  expect(server.process.stderr()).toBe('');
});
