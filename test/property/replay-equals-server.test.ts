/*
 * A replay decides each request of a log as the server did that wrote it. The model of a server is the service with a
 * clock of the test. An Envoy in front of it ends each request that was allowed, with the hold token and a charge, and
 * writes an access log. The server writes its decision log. Both logs are replayed with the same policy.
 */
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { replayedServer } from '../../src/cli/replay.js';
import { CODE, type Descriptor, type RateLimitResponse } from '../../src/codec/messages.js';
import { loadPolicies } from '../../src/config/files/load-policies.js';
import { exactTimeText } from '../../src/limiter/clock.js';
import { Replay, type ReplayOptions } from '../../src/replay/replay.js';
import { type LogMap, readReplayMap } from '../../src/replay/replay-map.js';
import { decisionLine } from '../../src/server/decision-log/decision-log.js';
import { Refusal } from '../../src/service/refusal.js';
import { ShouldRateLimit } from '../../src/service/should-rate-limit.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { FakeClock } from '../support/clock/fake-clock.js';
import { seededRandom } from '../support/limiter/seeded-random.js';
import { MEMORY } from '../support/limiter/store-options.js';
import { Decider } from '../support/policy/decider.js';
import { TempDir } from '../support/process/temp-dir.js';

const TESTS = process.env['WEIR_TEST_FULL'] === undefined ? 1 : 25;
/** Number of logs of each test. */
const LOGS = 4;
const REQUESTS = 5000;
const SECOND = 1_000_000;
const HOUR = 3600 * SECOND;
/** Some hours before the end of summer time in Berlin. */
const START = Date.parse('2026-10-24T18:00:00Z') * 1000;

const folder = new TempDir();
folder.write(
  'map.yaml',
  `domain: shop
time: start
method: method
flags: flags
duration: took
hits: { from: hits }
descriptors:
  - [{ key: tenant, from: tenant }]
  - [{ key: path, from: path }]
  - [{ key: customer, from: customer }]
  - [{ key: spender, from: spender }]
  - [{ key: reserved, from: reserved }]
at_end:
  hits: { from: used }
  descriptors: [[{ key: charged, from: tenant }]]
`,
);

/** Returns a policy whose limits are often, but not always, exceeded. */
function policyOf(random: () => number): string {
  const count = (most: number): number => 1 + Math.floor(random() * most);
  const phase =
    random() < 0.2 ? 'phase: { grace_period: "2026-10-25T00:00:00Z", active: "2026-10-25T03:00:00Z" }\n' : '';
  return `domain: shop
${phase}plans:
  by: customer
  default: free
  define:
    free: { burst: 3, interval: 10s }
    gold: { burst: ${4 + count(10)}, interval: 2s }
    acme: { blocked: true }
    globex: { unlimited: true }
descriptors:
  - key: tenant
    rate_limits:
      - { name: short, token_bucket: { max_tokens: ${20 + count(20)}, tokens_per_fill: ${4 + count(4)}, fill_interval: ${3 + count(20)}s } }
      - { name: daily, unit: day, calendar: Europe/Berlin, requests_per_unit: ${500 + count(500)} }
      - { name: in-flight, concurrency: { max: ${4 + count(12)}, expires_after: 30s } }
  - key: path
    rate_limit: { unit: minute, requests_per_unit: ${8 + count(20)} }
  - key: customer
    rate_limit: { token_bucket: { max_tokens: { plan: burst }, fill_interval: { plan: interval } } }
  - key: spender
    rate_limits:
      - { name: plan, token_bucket: { max_tokens: ${count(5)}, fill_interval: 20s }, then: credits }
      - { name: credits, unit: hour, requests_per_unit: ${50 + count(100)} }
  - key: reserved
    rate_limit:
      token_bucket: { max_tokens: 100, tokens_per_fill: ${count(10)}, fill_interval: 1s }
      hold: { amount: ${count(40)}, expires_after: 20s, unknown: ${random() < 0.5 ? 'free' : 'keep'} }
  - key: charged
    rate_limit: { token_bucket: { max_tokens: 50, tokens_per_fill: 5, fill_interval: 1s }, allow_debt: true }
`;
}

interface Logs {
  readonly decisions: string;
  readonly accesses: string;
  /** Calls that are not only ends of holds. */
  readonly calls: number;
  readonly deniedCalls: number;
  /** Denied requests. */
  readonly denied: number;
}

/** Serves requests of random callers. Starts are at even microseconds and ends at odd ones, so no order is open. */
function serve(policy: string, random: () => number): Logs {
  const clock = new FakeClock();
  clock.wall = START;
  const store = new MemoryStore({ ...MEMORY, clock });
  const { policySet, errors } = loadPolicies([folder.write('policy.yaml', policy)]);
  expect(errors).toEqual([]);
  const decisions: string[] = [];
  const accesses: string[] = [];
  const decider = new Decider('domain: unused\ndescriptors: []\n');
  const service = new ShouldRateLimit({
    ...decider.options,
    clock,
    store,
    local: store,
    policies: { current: () => policySet },
    decisionLog: { sample: () => 1, write: (record) => decisions.push(decisionLine(record)) },
  });
  let calls = 0;
  let deniedCalls = 0;
  const ask = (descriptors: readonly Descriptor[]): RateLimitResponse => {
    const reply = service.decide({ domain: 'shop', descriptors, hitsAddend: 0 });
    if (reply instanceof Promise || reply instanceof Refusal) throw new Error('not decided');
    calls++;
    if (reply.overallCode === CODE.OVER_LIMIT) deniedCalls++;
    return reply;
  };
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const descriptor = (key: string, value: string, hitsAddend: number | undefined): Descriptor => {
    return { entries: [{ key, value }], limit: undefined, hitsAddend, isNegativeHits: false };
  };
  const ends: { readonly at: number; readonly run: () => void }[] = [];
  const advance = (to: number): void => clock.advance(to - clock.wall);
  const runEnds = (until: number): void => {
    for (;;) {
      const next = ends.reduce<(typeof ends)[number] | undefined>(
        (first, end) => (first === undefined || end.at < first.at ? end : first),
        undefined,
      );
      if (next === undefined || next.at > until) return;
      ends.splice(ends.indexOf(next), 1);
      advance(next.at);
      next.run();
    }
  };
  let denied = 0;
  let time = START;
  for (let i = 0; i < REQUESTS; i++) {
    time += 2 + 2 * Math.floor((random() < 0.002 ? 6 * HOUR * random() : 2 * SECOND * random() ** 2) / 2);
    runEnds(time);
    advance(time);
    const hits = pick([1, 1, 1, 2]);
    const values: Record<string, string> = { tenant: pick(['a', 'b', 'c', 'd']) };
    if (random() < 0.3) values['path'] = pick(['/', '/a', '/b']);
    if (random() < 0.3) values['customer'] = pick(['free', 'gold', 'acme', 'globex', 'initech']);
    if (random() < 0.2) values['spender'] = pick(['s', 't']);
    if (random() < 0.2) values['reserved'] = pick(['r', 'q']);
    const descriptors = ['tenant', 'path', 'customer', 'spender', 'reserved'].flatMap((key) => {
      const value = values[key];
      return value === undefined ? [] : [descriptor(key, value, hits)];
    });
    const { overallCode, dynamicMetadata } = ask(descriptors);
    const isDenied = overallCode === CODE.OVER_LIMIT;
    if (isDenied) denied++;
    const took = isDenied ? 1 : 1 + 2 * Math.floor(pick([0.1, 1, 20]) * SECOND * random());
    const used = random() < 0.2 ? undefined : Math.floor(60 * random());
    const token = dynamicMetadata?.['hold'];
    const start = exactTimeText(time);
    const run = (): void => {
      const flags = isDenied ? 'RL' : '-';
      accesses.push(
        JSON.stringify({ start, method: 'GET', flags, took: `${took}us`, hits, used, ...values }),
      );
      if (isDenied) return;
      const charge = descriptor('charged', values['tenant'] as string, used);
      ask(typeof token === 'string' ? [descriptor('hold', token, used), charge] : [charge]);
    };
    ends.push({ at: time + took, run });
  }
  // Requests that have not ended have no line in an access log, but all starts count.
  runEnds(Number.POSITIVE_INFINITY);
  return { decisions: decisions.join(''), accesses: `${accesses.join('\n')}\n`, calls, deniedCalls, denied };
}

async function replayOf(policy: string, log: string, more: Partial<ReplayOptions>) {
  const { policySet } = loadPolicies([folder.write('policy.yaml', policy)]);
  const replay = new Replay({
    policy: policySet,
    against: undefined,
    map: undefined,
    by: undefined,
    logs: [folder.write('log', log)],
    server: replayedServer('hold'),
    signal: new AbortController().signal,
    onProgress: () => {},
    ...more,
  });
  return replay.run();
}

const firstSeeds = Array.from({ length: TESTS }, (_, at) => LOGS * at + 1);

test.each(firstSeeds)('decides each line of four logs, from seed %i, as the server did', async (first) => {
  const map = readReplayMap(join(folder.path, 'map.yaml')) as LogMap;
  for (let seed = first; seed < first + LOGS; seed++) {
    const random = seededRandom(seed);
    const policy = policyOf(random);
    const { decisions, accesses, calls, deniedCalls, denied } = serve(policy, random);
    const ofDecisions = await replayOf(policy, decisions, {});
    const same = { seed, newlyDenied: 0, newlyAllowed: 0 };
    const asServed = { ...same, requests: calls, before: deniedCalls, after: deniedCalls };
    expect({ seed, ...ofDecisions.tally.all }).toEqual(asServed);
    const ofAccesses = await replayOf(policy, accesses, { map });
    const asLogged = { ...same, requests: REQUESTS, before: denied, after: denied };
    expect({ seed, ...ofAccesses.tally.all }).toEqual(asLogged);
    const { policySet: against } = loadPolicies([folder.write('policy.yaml', policy)]);
    const ofPolicies = await replayOf(policy, decisions, { against });
    expect({ seed, ...ofPolicies.tally.all }).toEqual(asServed);
    expect([denied > 0, denied < REQUESTS]).toEqual([true, true]);
    expect([ofDecisions.late, ofAccesses.late, ofAccesses.faults.size]).toEqual([0, 0, 0]);
  }
});
