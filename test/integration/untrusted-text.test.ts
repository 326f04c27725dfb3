/* Tests that text from servers cannot control the terminal, start a new line or hide text. */
import { type AddressInfo, createServer, type Server as TcpServer } from 'node:net';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { RATE_LIMIT_SERVICE } from '../../src/codec/rls-definition.js';
import { HEALTH_CHECK_PATH } from '../../src/grpc/health.js';
import { createReferenceCodec } from '../support/codec/reference-codec.js';
import { waitFor } from '../support/process/wait-for.js';
import { CommandHost } from '../support/weir/commands.js';
import { type FakeDebugPort, startFakeDebugPort } from '../support/weir/fake-debug-port.js';
import { startWeir } from '../support/weir/weir.js';

const HOSTILE =
  'a\u202eb\u202ac\u2066d\u2069e\u200ef\u200fg\u061ch\u200bi\u200dj\u2060k\ufeffl\u009b31mm\u0085n\u2028o\u2029p\u001b[31mq\u007fz';
const STEERS = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

let port: FakeDebugPort;
let grpc: Server;
let address: string;
/** Whether calls are answered or fail. */
let answers = false;

beforeAll(async () => {
  port = await startFakeDebugPort();
  grpc = new Server();
  const codec = createReferenceCodec();
  const answer = codec.encodeResponse({
    overallCode: CODE.OK,
    statuses: [
      {
        code: CODE.OK,
        currentLimit: { name: HOSTILE, requestsPerUnit: 1, unit: 1 },
        limitRemaining: 0,
        durationUntilResetSeconds: 1,
      },
    ],
    responseHeadersToAdd: [{ key: HOSTILE, value: HOSTILE }],
    requestHeadersToAdd: [],
    rawBody: Buffer.from(HOSTILE),
    dynamicMetadata: { [HOSTILE]: HOSTILE },
  });
  const unary = (path: string) => ({
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: (bytes: Buffer) => bytes,
    requestDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (bytes: Uint8Array) => Buffer.from(bytes),
    responseDeserialize: (bytes: Buffer) => bytes,
  });
  grpc.addService(
    { limit: unary(`/${RATE_LIMIT_SERVICE}/ShouldRateLimit`), check: unary(HEALTH_CHECK_PATH) },
    {
      limit: (_: unknown, callback: (error: object | null, bytes?: Uint8Array) => void) => {
        if (answers) callback(null, answer);
        else callback({ code: status.INTERNAL, details: HOSTILE });
      },
      check: (_: unknown, callback: (error: object | null) => void) =>
        callback({ code: status.INTERNAL, details: HOSTILE }),
    },
  );
  const bound = await new Promise<number>((resolve, reject) =>
    grpc.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, found) =>
      error === null ? resolve(found) : reject(error),
    ),
  );
  address = `127.0.0.1:${bound}`;
});
afterAll(() => {
  grpc.forceShutdown();
});

const entries = [{ key: HOSTILE, value: HOSTILE }];
const row = {
  domain: HOSTILE,
  rule: HOSTILE,
  entries,
  denied: 7,
  denied_error: 0,
  used: 9,
  used_error: 0,
  used_ratio: 1,
};
const TOP = { of: 'minute', by: 'denied', covers: 60, error: { denied: 0, used: 0 }, sampled: 1, top: [row] };
const BUCKETS = {
  action: 'show',
  dry_run: false,
  domain: HOSTILE,
  entries,
  meets: 'descriptor',
  store: HOSTILE,
  buckets: [
    {
      rule: HOSTILE,
      name: HOSTILE,
      algorithm: HOSTILE,
      limit: 1,
      about: HOSTILE,
      enforcement: HOSTILE,
      entries,
      redis_key: HOSTILE,
      redis_slot: 1,
      now: { left: 1, debt: 0, next_token_in: 0, full_in: 0 },
      holds: { list: [{ id: HOSTILE, amount: 1, age: 1, ends_in: 1 }], more: 0 },
      note: HOSTILE,
    },
  ],
  more: 0,
  notes: [HOSTILE],
};

const host = new CommandHost();
const printed = async (...args: readonly string[]): Promise<string> =>
  (await host.run({ args, folder: '/' })).printed;

/** Expects the beginning and the end of the text, without control sequences in between. */
function expectText(text: string): void {
  expect(text).toMatch(/q.{1,9}z/u);
  expect(STEERS.exec(text)).toBe(null);
}

describe.each([
  ['an error', { status: 503, body: { error: HOSTILE } }],
  ['an answer', undefined],
])('%s of a debug port', (_, error) => {
  beforeAll(() => {
    port.answer = ({ path }) => error ?? { body: path === '/top' ? TOP : BUCKETS };
  });

  test.each([
    [['bucket', 'show', 'a=b']],
    [['bucket', 'show', 'a=b', '--json']],
    [['top']],
    [['top', '--json']],
  ])('%j', async (args) => {
    expectText(await printed(...args, '--address', port.address));
  });
});

test.each(['bucket show a=b', 'top'])('%s shows the beginning of an endless error', async (command) => {
  port.answer = () => ({ status: 503, body: { error: HOSTILE.repeat(20_000) } });
  const text = await printed(...command.split(' '), '--address', port.address);
  expectText(text);
  expect(text).toMatch(/ more characters\)\n$/);
  expect(text.length).toBeLessThan(10_000);
});

test.each([
  [['check'], false],
  [['check'], true],
  [['check', '--json'], true],
  [['health'], false],
])('%j shows text of a gRPC server that answers: %j', async (args, does) => {
  answers = does;
  const entry = args[0] === 'check' ? ['--policy', '/nowhere', 'a=b'] : [];
  expectText(await printed(...args, '--address', address, ...entry));
});

test.each([false, true])('ratelimit-client shows text of a gRPC server that answers: %j', async (does) => {
  answers = does;
  expectText(await printed('ratelimit-client', '-dial_string', address, '-descriptors', 'a=b'));
});

test.each(['text', 'json'])('a log of format %s escapes text from Redis', async (format) => {
  const redis: TcpServer = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      const commands = bytes.toString().split(/^\*/m).length - 1;
      socket.write(`-ERR ${HOSTILE}\r\n`.repeat(commands));
    });
  });
  await new Promise<void>((resolve) => redis.listen(0, '127.0.0.1', resolve));
  const server = await startWeir({
    policy: 'domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 5 } }]\n',
    env: { REDIS_URL: `127.0.0.1:${(redis.address() as AddressInfo).port}`, LOG_FORMAT: format },
    untilHealthy: false,
  });
  try {
    await waitFor('the line', () => /q.{1,9}z/u.test(server.process.stdout()));
    expect(STEERS.exec(server.process.stdout())).toBe(null);
  } finally {
    await server.stop();
    redis.close();
  }
});
