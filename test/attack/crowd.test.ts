/*
 * Bounds the memory of a thousand hostile connections: weir stays within a small container, and answers other clients.
 */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { SHOULD_RATE_LIMIT_PATH } from '../../src/codec/rls-definition.js';
import { block, callFields, END_HEADERS, END_STREAM, frame, TYPE } from '../support/h2/h2-frames.js';
import { prefixed } from '../support/h2/http2-client.js';
import { environmentChoice } from '../support/process/environment-choice.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { AttackedServer } from './attacked-server.js';
import type { Attack } from './attacker/attack.js';
import { Attacker } from './attacker/attacker.js';
import { INNOCENT, REQUEST_ATTACKS, WORST_REQUESTS } from './requests.js';
import {
  descriptor,
  EMPTY,
  field,
  filledDescriptor,
  gzip,
  http,
  MESSAGE_BYTES,
  repeat,
  request,
} from './wire.js';

const MIB = 1_048_576;
/**
 * Sizes of containers with their MEMORY_MAX_BYTES: the manual's minimum, and the size in deploy/kubernetes. `npm run
 * test:matrix` uses the larger one (WEIR_TEST_CONTAINER=512), whose heap is the same.
 */
const CONTAINERS = [
  [256, '33554432'],
  [512, '134217728'],
] as const;
const LEAST = CONTAINERS[0][0];
/** Part of a container's memory that stays free for pages of files, such as the program of Node.js. */
const FILES_MIB = 32;
const mebibytesHere = Number(environmentChoice('WEIR_TEST_CONTAINER', ['256', '512']) ?? LEAST);
const CONNECTIONS = 1000;
const ATTACK_MS = 2000;

const HEAD = callFields(SHOULD_RATE_LIMIT_PATH);

/** Returns calls whose answers are long, because they quote the request. */
function longAnswers(): Buffer {
  const message = request('any', ...Array.from({ length: 100 }, (_, n) => descriptor(['v', `value${n}`])));
  const one = (id: number): Buffer =>
    Buffer.concat([
      frame(TYPE.HEADERS, END_HEADERS, id, block(...HEAD)),
      frame(TYPE.DATA, END_STREAM, id, prefixed(message)),
    ]);
  return Buffer.concat(Array.from({ length: 50 }, (_, n) => one(2 * n + 1)));
}

/** The attacks of the hostile connections. Each has the same number of connections. */
const CROWD: readonly Attack[] = [
  {
    kind: 'grpc',
    messages: [Buffer.alloc(MESSAGE_BYTES - 64, 'a')],
    streams: 64,
    calls: 64,
    incomplete: true,
  },
  { kind: 'frames', repeated: longAnswers(), times: 40, unread: true },
  // A header block of the maximum size, without END_HEADERS.
  {
    kind: 'frames',
    repeated: frame(TYPE.HEADERS, 0, 1, block(...HEAD, `x: ${'y'.repeat(15_000)}`)),
    times: 1,
  },
  { kind: 'http', request: http('GET', '/metrics'), pipelined: 1, unread: true },
  {
    kind: 'grpc',
    messages: [gzip(filledDescriptor('any', EMPTY.entry))],
    gzip: true,
    streams: 4,
    calls: 4,
  },
  // Large requests that wait for their turn.
  { kind: 'grpc', messages: Object.values(WORST_REQUESTS), streams: 16 },
];

/** Requests of 60 KB, or with the maximum number of entries, that wait for Redis. */
const WAITING: readonly Attack[] = [
  descriptor(['other', 'x'.repeat(60_000)]),
  field(2, repeat(field(1, field(1, 'a')), 990 * 5)),
].map((other) => ({
  kind: 'grpc',
  messages: [request(INNOCENT, descriptor(['caller', 'innocent']), other)],
  streams: 100,
  connections: 50,
}));

/** One of each call from the other tests. */
const CALLS: readonly Attack[] = Object.values(REQUEST_ATTACKS);

let attacker: Attacker;
beforeAll(() => {
  attacker = new Attacker();
});

describe.each(CONTAINERS.filter(([mebibytes]) => mebibytes === mebibytesHere))(
  'in %d MiB',
  (mebibytes, memoryMaxBytes) => {
    let server: AttackedServer;
    beforeAll(async () => {
      server = await AttackedServer.start({ MEMORY_MAX_BYTES: memoryMaxBytes });
      await server.settle();
    });

    /** Runs each attack on `connections` connections for `ms`, and sends innocent calls at the same time. */
    async function attackAll(attacks: readonly Attack[], connections: number, ms: number): Promise<void> {
      const aimed = attacks.map((attack) => server.aim({ ...attack, connections }));
      await server.askInnocently(attacker.attack({ attacks: aimed, ms }));
      await server.askInnocently();
      await attacker.finish();
      const peak = server.peak() ?? Number.POSITIVE_INFINITY;
      process.stdout.write(`in ${mebibytes} MiB, a peak of ${(peak / MIB).toFixed(0)} MiB\n`);
      expect(peak).toBeLessThan((mebibytes - FILES_MIB) * MIB);
    }

    test('a thousand hostile connections leave enough memory, and other clients are answered', async () => {
      await attackAll(CROWD, Math.ceil(CONNECTIONS / CROWD.length), ATTACK_MS);
    }, 180_000);

    // The smaller container covers the larger one, because the heap is the same.
    if (mebibytes !== LEAST) return;
    test('all expensive calls at once leave enough memory', async () => {
      for (let first = 0; first < CALLS.length; first += CROWD.length) {
        await attackAll(CALLS.slice(first, first + CROWD.length), 4, 500);
      }
    }, 300_000);
  },
);

if (mebibytesHere === LEAST) {
  test.each(WAITING.map((attack, n) => [['of 60 KB', 'of many entries'][n], attack] as const))(
    'requests %s that wait for a Redis that does not answer stay within 256 MiB',
    async (_, attack) => {
      const redis = await startRedis();
      const server = await AttackedServer.start({ REDIS_URL: `127.0.0.1:${redis.port}` });
      await server.settle();
      redis.pause();
      await attacker.attack({ attacks: [server.aim(attack)], ms: ATTACK_MS });
      redis.resume();
      const peak = server.peak() ?? Number.POSITIVE_INFINITY;
      process.stdout.write(`with an unresponsive Redis, a peak of ${(peak / MIB).toFixed(0)} MiB\n`);
      expect(peak).toBeLessThan((LEAST - FILES_MIB) * MIB);
      await attacker.finish();
      await waitFor('Redis to decide again', () =>
        server.askInnocently().then(
          () => true,
          () => false,
        ),
      );
    },
    180_000,
  );
}
