/* Repeated operator requests to a server with 10,000 rules and a million buckets. */
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import { RawClient } from '../../support/grpc/grpc-client.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type EventReader, readEvents } from '../../support/weir/events.js';
import type { Attack } from '../attack/attack.js';
import type { StallCase, StallGroup } from '../stall-case.js';
import type { StallServer } from '../stall-server.js';
import { entry, field, http, request } from '../wire.js';

const RULES = 10_000;
const BUCKETS = 1_000_000;
const ASKED_AGAIN = 200_000;
/** Descriptors in one call, below any bound. */
const AT_ONCE = 500;
/** Browsers that show the page. */
const PAGES = 20;
/** Calls under way at a time. */
const CALLS = 20;

/** Limits of each group of any tenant: all of them concern every tenant. */
function tenantsPolicy(): string {
  const nodes = Array.from(
    { length: RULES },
    (_, n) =>
      `      - { key: group, value: g${n}, rate_limit: { name: rule${n}, unit: day, requests_per_unit: 1000000 } }`,
  );
  return `domain: tenants\ndescriptors:\n  - key: tenant\n    descriptors:\n${nodes.join('\n')}\n`;
}

/** Posts with a body, sent one after the other as each is answered. */
function post(path: string, body: object, domain: object = { domain: 'tenants' }): () => Attack {
  const request = http('POST', path, JSON.stringify({ ...domain, ...body }));
  return () => ({ kind: 'http', port: 'debug', request, pipelined: 1 });
}

const tenant = { key: 'tenant', value: 'tenant1' };
const descriptor = [tenant, { key: 'group', value: 'g1' }];

const CASES: readonly StallCase[] = [
  {
    name: 'administration: show of what concerns a tenant',
    attack: post('/buckets', { action: 'show', entries: [tenant] }),
  },
  {
    name: 'administration: show of a descriptor',
    attack: post('/buckets', { action: 'show', entries: descriptor }),
  },
  {
    name: 'administration: reset of all of a tenant',
    attack: post('/buckets', { action: 'reset', entries: [tenant] }),
  },
  {
    name: 'administration: block of a tenant',
    attack: post('/buckets', { action: 'block', entries: [tenant], for: '10m', reason: 'too much' }),
  },
  { name: 'administration: blocks', attack: post('/buckets', { action: 'blocks' }) },
  { name: 'administration: top of the hour', attack: post('/top', { of: 'hour', limit: 1000 }) },
  { name: 'administration: history', attack: post('/history', {}, {}) },
  { name: 'administration: twenty pages', beside: twentyPages },
];

/** Twenty browsers follow the server, until each has heard of a step of the history. */
async function twentyPages({ weir }: StallServer): Promise<number> {
  const pages = await Promise.all(Array.from({ length: PAGES }, () => readEvents(weir.debugPort)));
  const has = (page: EventReader): boolean => page.events.some(({ name }) => name === 'point');
  await waitFor('a step of the history', () => pages.every(has));
  for (const page of pages) page.close();
  return pages.reduce((sum, { events }) => sum + JSON.stringify(events).length, 0);
}

export const ADMINISTRATION_GROUP: StallGroup = {
  setup: {
    name: 'administration, 10,000 rules, a million buckets',
    files: { 'tenants.yaml': tenantsPolicy() },
    env: { MEMORY_MAX_BUCKETS: String(2 * BUCKETS) },
    // Each tenant has a bucket in each of a hundred groups. The first ones are asked for again and again, until what is
    // left of new buckets has been collected, or has grown old: that is no administrative call's doing.
    prepare: async ({ weir }) => {
      // Bytes are sent as they are, and answers not decoded: that would take longer than weir does.
      const client = new RawClient(`127.0.0.1:${weir.grpcPort}`);
      const groups = Array.from({ length: 100 }, (_, n) => entry('group', `g${n}`));
      let next = 0;
      const ask = async (): Promise<void> => {
        while (next < BUCKETS + ASKED_AGAIN) {
          const first = next < BUCKETS ? next : 0;
          next += AT_ONCE;
          const descriptors = Array.from({ length: AT_ONCE / 100 }, (_, n) => {
            const tenant = entry('tenant', `tenant${first / 100 + n}`);
            return groups.map((group) => field(2, Buffer.concat([tenant, group])));
          });
          const message = request('tenants', ...descriptors.flat());
          const reply = await client.unary(SHOULD_RATE_LIMIT_PATH, message, {});
          if (!('message' in reply)) throw new Error(`a call that makes buckets fails: ${reply.details}`);
        }
      };
      await Promise.all(Array.from({ length: CALLS }, ask));
      client.close();
    },
  },
  cases: CASES.map((one) => ({ ...one, connections: [1] })),
};
