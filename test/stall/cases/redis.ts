/* Requests that make Redis work, for one process and for two. */

import { setTimeout as pause } from 'node:timers/promises';
import { RlsClient } from '../../support/grpc/rls-client.js';
import type { Attack } from '../attack/attack.js';
import { anyValuePolicy, calendarPolicy, usedUpPolicy } from '../policy-texts.js';
import type { StallCase, StallGroup } from '../stall-case.js';
import { descriptor, EMPTY, field, filledDescriptor, gzip, request } from '../wire.js';
import { MATCHER_FILES, PATH_CASES } from './matchers.js';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

function wideRequest(domain: string, descriptors: number, value: string): Buffer {
  return request(domain, ...numbers(descriptors).map((n) => descriptor(['v', `${value}${n}`])));
}

function wide(descriptors: number, streams = 4): () => Attack {
  const message = wideRequest('any', descriptors, 'value');
  return () => ({ kind: 'grpc', messages: [message], streams, timeout: '1S' });
}

/** RateLimitOverride of 1 an hour (unit 3). */
const OVERRIDE = field(2, Buffer.of(8, 1, 16, 3));

function overrides(entries: number): Buffer {
  const all = numbers(entries).map((n) =>
    field(1, Buffer.concat([field(1, `key${n}`), field(2, `value${n}`)])),
  );
  return request('any', field(2, Buffer.concat([...all, OVERRIDE])));
}

const WIDE: readonly StallCase[] = [
  { name: 'Redis, 9,999 descriptors', attack: wide(9999) },
  { name: 'Redis, 1,000 descriptors', attack: wide(1000) },
  { name: 'Redis, 500 descriptors, 30 calls at once', attack: wide(500, 30) },
  {
    name: 'Redis, an override over 9,000 entries',
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

/** Requests by turns, so that what is remembered of one does not answer the next. */
const USED_UP = numbers(4).map((n) => wideRequest('used', 1000, `value${n} `));

const DENIED: StallCase = {
  name: 'Redis, 1,000 descriptors of 4 denied limits each',
  attack: () => ({ kind: 'grpc', messages: USED_UP, streams: 4, timeout: '1S' }),
};

const files = { 'any.yaml': anyValuePolicy('any') };

export const REDIS_GROUP: StallGroup = { setup: { name: 'Redis', files, redis: true }, cases: WIDE };

export const DENIED_GROUP: StallGroup = {
  setup: {
    name: 'Redis, used up buckets',
    files: { 'used.yaml': usedUpPolicy('used') },
    redis: true,
    prepare: async ({ weir }) => {
      const client = new RlsClient(weir.grpcPort);
      for (const message of USED_UP) {
        const { code, details } = await client.send(message);
        if (code !== 0) throw new Error(`the calls that use the buckets up fail: ${code} ${details}`);
      }
      client.close();
    },
  },
  cases: [DENIED],
};

/** A little more than a reload takes. */
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
        messages: [wideRequest('calendars', 1000, 'value')],
        streams: 4,
        timeout: '1S',
      }),
      // Rates that are new know nothing of what the ones before them computed.
      beside: async ({ policies }, ended) => {
        let bytes = 0;
        for (let turn = 1; !ended(); turn++) {
          const text = calendarPolicy('calendars', 1000, turn);
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
    ...WIDE.filter(({ name }) => /1,000 desc|500 desc|override/.test(name)),
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
