/* Repeated administrative requests to a server with 10,000 rules and a million buckets. */
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import type { Attack } from '../../attack/attacker/attack.js';
import { entry, field, http, request } from '../../attack/wire.js';
import { RawClient } from '../../support/grpc/grpc-client.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type EventReader, readEvents } from '../../support/weir/events.js';
import type { StallCase, StallGroup } from '../stall-case.js';
import type { StallServer } from '../stall-server.js';

const RULES = 10_000;
const BUCKETS = 1_000_000;
const REPEATED_DESCRIPTORS = 200_000;
/** One for each group, below all bounds. */
const DESCRIPTORS_PER_CALL = 100;
/** Number of browsers that show the page. */
const BROWSERS = 20;
/** Number of concurrent calls. */
const CONCURRENT_CALLS = 20;

/** Returns a policy whose limits, one for each group, all apply to every tenant. */
function tenantsPolicy(): string {
  const nodes = Array.from(
    { length: RULES },
    (_, n) =>
      `      - { key: group, value: g${n}, rate_limit: { name: rule${n}, unit: day, requests_per_unit: 1000000 } }`,
  );
  return `domain: tenants\ndescriptors:\n  - key: tenant\n    descriptors:\n${nodes.join('\n')}\n`;
}

/** Returns POST requests with a body. Each request waits for the answer to the previous request. */
function post(path: string, body: object, domain: object = { domain: 'tenants' }): () => Attack[] {
  const request = http('POST', path, JSON.stringify({ ...domain, ...body }));
  return () => [{ kind: 'http', port: 'debug', request, pipelined: 1, connections: 1 }];
}

const tenant = { key: 'tenant', value: 'tenant1' };
const descriptor = [tenant, { key: 'group', value: 'g1' }];

const CASES: readonly StallCase[] = [
  {
    name: 'administration: show all buckets of a tenant',
    attacks: post('/buckets', { action: 'show', entries: [tenant] }),
  },
  {
    name: 'administration: show the bucket of a descriptor',
    attacks: post('/buckets', { action: 'show', entries: descriptor }),
  },
  {
    name: 'administration: reset all buckets of a tenant',
    attacks: post('/buckets', { action: 'reset', entries: [tenant] }),
  },
  { name: 'administration: top callers of the hour', attacks: post('/top', { of: 'hour', limit: 1000 }) },
  { name: 'administration: history', attacks: post('/history', {}, {}) },
  { name: 'administration: twenty open pages', background: openTwentyPages },
];

/**
 * Opens the event stream for twenty browsers, and waits until each has received a point of the history. Resolves with
 * the number of received bytes.
 */
async function openTwentyPages({ weir }: StallServer): Promise<number> {
  const pages = await Promise.all(Array.from({ length: BROWSERS }, () => readEvents(weir.debugPort)));
  const has = (page: EventReader): boolean => page.events.some(({ name }) => name === 'point');
  await waitFor('a point of the history', () => pages.every(has));
  for (const page of pages) page.close();
  return pages.reduce((sum, { events }) => sum + JSON.stringify(events).length, 0);
}

export const ADMINISTRATION_GROUP: StallGroup = {
  setup: {
    name: 'administration, 10,000 rules, a million buckets',
    files: { 'tenants.yaml': tenantsPolicy() },
    env: { MEMORY_MAX_BUCKETS: String(2 * BUCKETS) },
    // Creates a bucket in each of a hundred groups for each tenant. Then repeats the first calls until V8 has collected
    // or promoted the garbage of the new buckets, so that V8 does not do this work during administrative requests.
    prepare: async ({ weir }) => {
      // Sends encoded requests and does not decode answers, because both would take longer than weir's work.
      const client = new RawClient(`127.0.0.1:${weir.grpcPort}`);
      const groups = Array.from({ length: DESCRIPTORS_PER_CALL }, (_, n) => entry('group', `g${n}`));
      let next = 0;
      const sendCalls = async (): Promise<void> => {
        while (next < BUCKETS + REPEATED_DESCRIPTORS) {
          const first = next < BUCKETS ? next : 0;
          next += DESCRIPTORS_PER_CALL;
          const tenant = entry('tenant', `tenant${first / DESCRIPTORS_PER_CALL}`);
          const descriptors = groups.map((group) => field(2, Buffer.concat([tenant, group])));
          const message = request('tenants', ...descriptors);
          const reply = await client.unary(SHOULD_RATE_LIMIT_PATH, message, {});
          if (!('message' in reply)) throw new Error(`a call that creates buckets failed: ${reply.details}`);
        }
      };
      await Promise.all(Array.from({ length: CONCURRENT_CALLS }, sendCalls));
      client.close();
    },
  },
  cases: CASES,
};
