/* Large requests to servers with Redis, with one worker and with two. */

import { setTimeout as pause } from 'node:timers/promises';
import { RlsClient } from '../../support/grpc/rls-client.js';
import type { Attack } from '../attack/attack.js';
import { anyValuePolicy, calendarPolicy, emptyBucketPolicy } from '../policy-texts.js';
import type { StallCase, StallGroup } from '../stall-case.js';
import { descriptor, EMPTY, field, filledDescriptor, gzip, request } from '../wire.js';
import { MATCHER_FILES, PATH_CASES } from './matchers.js';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

function largeRequest(domain: string, descriptors: number, value: string): Buffer {
  return request(domain, ...numbers(descriptors).map((n) => descriptor(['v', `${value}${n}`])));
}

function largeAttack(descriptors: number, streams = 4): () => Attack {
  const message = largeRequest('any', descriptors, 'value');
  return () => ({ kind: 'grpc', messages: [message], streams, timeout: '1S' });
}

/** RateLimitOverride of 1 request per hour (unit 3). */
const OVERRIDE = field(2, Buffer.of(8, 1, 16, 3));

function overrides(entries: number): Buffer {
  const all = numbers(entries).map((n) =>
    field(1, Buffer.concat([field(1, `key${n}`), field(2, `value${n}`)])),
  );
  return request('any', field(2, Buffer.concat([...all, OVERRIDE])));
}

const LARGE: readonly StallCase[] = [
  { name: 'Redis, 9,999 descriptors', attack: largeAttack(9999) },
  { name: 'Redis, 1,000 descriptors', attack: largeAttack(1000) },
  { name: 'Redis, 500 descriptors, 30 calls at once', attack: largeAttack(500, 30) },
  {
    name: 'Redis, an override for 9,000 entries',
    attack: () => ({ kind: 'grpc', messages: [overrides(9000)], streams: 2, timeout: '1S' }),
  },
  {
    name: 'Redis, value of 60 KB',
    attack: () => ({
      kind: 'grpc',
      messages: [request('any', descriptor(['v', 'v'.repeat(61_440)]))],
      streams: 4,
      timeout: '1S',
    }),
  },
];

/** Requests in rotation, so that cached denials of one request do not decide the next. */
const DENIED_REQUESTS = numbers(4).map((n) => largeRequest('empty', 1000, `value${n} `));

const DENIED: StallCase = {
  name: 'Redis, 1,000 descriptors with 4 denied limits each',
  attack: () => ({ kind: 'grpc', messages: DENIED_REQUESTS, streams: 4, timeout: '1S' }),
};

const files = { 'any.yaml': anyValuePolicy('any') };

export const REDIS_GROUP: StallGroup = { setup: { name: 'Redis', files, redis: true }, cases: LARGE };

export const DENIED_GROUP: StallGroup = {
  setup: {
    name: 'Redis, empty buckets',
    files: { 'empty.yaml': emptyBucketPolicy('empty') },
    redis: true,
    prepare: async ({ weir }) => {
      const client = new RlsClient(weir.grpcPort);
      for (const message of DENIED_REQUESTS) {
        const { code, details } = await client.send(message);
        if (code !== 0) throw new Error(`a call that empties the buckets failed: ${code} ${details}`);
      }
      client.close();
    },
  },
  cases: [DENIED],
};

/** Slightly longer than a reload. */
const RELOAD_MS = 400;

export const CALENDAR_GROUP: StallGroup = {
  setup: {
    name: 'Redis, calendars',
    files: { 'calendars.yaml': calendarPolicy('calendars', 1000) },
    redis: true,
  },
  cases: [
    {
      name: 'Redis, 1,000 calendars in all time zones, reloaded',
      attack: () => ({
        kind: 'grpc',
        messages: [largeRequest('calendars', 1000, 'value')],
        streams: 4,
        timeout: '1S',
      }),
      // Each reload creates new rates, which must compute their windows again.
      background: async ({ policies }, ended) => {
        let bytes = 0;
        for (let reload = 1; !ended(); reload++) {
          const text = calendarPolicy('calendars', 1000, reload);
          policies.write('calendars.yaml', text);
          bytes += text.length;
          await pause(RELOAD_MS);
        }
        return bytes;
      },
    },
  ],
};

const withWorkers = (one: StallCase): StallCase => ({ ...one, name: `two workers: ${one.name}` });

export const WORKERS_GROUP: StallGroup = {
  setup: {
    name: 'Redis, two workers',
    files: MATCHER_FILES,
    redis: true,
    env: { WORKERS: '2' },
  },
  cases: [
    ...LARGE.filter(({ name }) => /1,000 desc|500 desc|override/.test(name)),
    ...PATH_CASES.slice(1, 2),
    {
      name: '4 MiB of empty entries in 4 KB of gzip',
      attack: (): Attack => ({
        kind: 'grpc',
        messages: [gzip(filledDescriptor('any', EMPTY.entry))],
        gzip: true,
        streams: 8,
      }),
    },
  ].map(withWorkers),
};
