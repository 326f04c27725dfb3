/*
 * A class floods a bucket that it shares with another class, through a real Envoy whose routes set the class. The other
 * class stays within what the first one keeps, and is never denied. With WEIR_TEST_FULL, the flood lasts a minute.
 */
import { Agent, request } from 'node:http';
import { describe, expect, jest, test } from '@jest/globals';
import { generic, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { startUpstream } from '../support/envoy/stack.js';
import { startCluster } from '../support/redis/cluster.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startWeir } from '../support/weir/weir.js';

const FULL = process.env['WEIR_TEST_FULL'] !== undefined;
const SECONDS = FULL ? 60 : 2;
/** Requests per second of the class that floods, and of the class that has 50 tokens and 100 per second. */
const [FLOOD, CALM] = [5_000, 40];
const [CAPACITY, KEPT, REFILL] = [100, 50, 100];
/** Maximum number of unanswered requests of the flood. */
const IN_FLIGHT = 64;
/** Time between the batches of a sender, in milliseconds. */
const TICK = 5;

jest.setTimeout((60 + 3 * SECONDS) * 1000);

const POLICY = `
domain: shared
descriptors:
  - key: customer
    descriptors:
      - key: class
        rate_limit:
          token_bucket: { max_tokens: ${CAPACITY}, tokens_per_fill: ${REFILL}, fill_interval: 1s }
          priorities: { by: class, keep: { batch: 50%, interactive: 0 } }
`;

/** The stores, each with the settings of weir for it. */
const STORES: Readonly<Record<string, () => Promise<NodeJS.ProcessEnv>>> = {
  memory: async () => ({}),
  Redis: async () => ({ REDIS_URL: `127.0.0.1:${(await startRedis()).port}` }),
  'a Redis Cluster': async () => {
    const cluster = await startCluster();
    return { REDIS_TYPE: 'CLUSTER', REDIS_URL: cluster.url };
  },
};

/** Answers of one class. */
interface Answers {
  allowed: number;
  denied: number;
  readonly others: number[];
}

/** Sends requests to a path at a rate for {@link SECONDS}, but only `inFlight` at a time, and counts the answers. */
function send(port: number, path: string, perSecond: number, inFlight: number): Promise<Answers> {
  const agent = new Agent({ keepAlive: true, maxSockets: inFlight });
  const answers: Answers = { allowed: 0, denied: 0, others: [] };
  const start = performance.now();
  const all = perSecond * SECONDS;
  let [sent, open] = [0, 0];
  return new Promise((resolve, reject) => {
    const sendOne = (): void => {
      sent++;
      open++;
      const call = request({ host: '127.0.0.1', port, path, agent }, (answer) => {
        open--;
        if (answer.statusCode === 200) answers.allowed++;
        else if (answer.statusCode === 429) answers.denied++;
        else answers.others.push(answer.statusCode ?? 0);
        answer.resume();
      });
      call.once('error', reject);
      call.end();
    };
    const timer = setInterval(() => {
      const elapsed = performance.now() - start;
      const due = Math.min(all, Math.floor((elapsed * perSecond) / 1000));
      // Requests that could not be sent in time are not made up for.
      while (sent < due && open < inFlight) sendOne();
      sent = Math.max(sent, due);
      if (sent < all || open > 0) return;
      clearInterval(timer);
      agent.destroy();
      resolve(answers);
    }, TICK);
  });
}

describe.each(Object.entries(STORES))('with buckets in %s', (_, startStore) => {
  test('a flood of one class denies no request of the other, and has the full rate when it is alone', async () => {
    const weir = await startWeir({ policy: POLICY, env: await startStore() });
    const upstream = await startUpstream();
    const route = (customer: string, name: string) => ({
      path: `/${customer}/${name}`,
      rateLimits: [{ actions: [generic('customer', customer), generic('class', name)] }],
    });
    const { port } = await startRouteEnvoy({
      domain: 'shared',
      routes: [route('a', 'batch'), route('a', 'interactive'), route('b', 'batch')],
      weirPort: weir.grpcPort,
      upstreamPort: upstream.port,
    });
    const timed = async <Value>(run: () => Promise<Value>): Promise<readonly [Value, number]> => {
      const start = performance.now();
      return [await run(), (performance.now() - start) / 1000];
    };

    const [[batch, interactive], together] = await timed(() =>
      Promise.all([
        send(port, '/a/batch', FLOOD, IN_FLIGHT),
        // Whatever waits is sent later, so that no interval has more requests than the class may send.
        send(port, '/a/interactive', CALM, KEPT),
      ]),
    );
    expect(interactive).toMatchObject({ denied: 0, others: [] });
    expect(interactive.allowed).toBeGreaterThan(CALM);
    expect(batch.denied).toBeGreaterThan(0);
    expect(batch.others).toEqual([]);
    expect(batch.allowed + interactive.allowed).toBeLessThanOrEqual(CAPACITY + REFILL * together + 1);

    const [alone, duration] = await timed(() => send(port, '/b/batch', FLOOD, IN_FLIGHT));
    expect(alone.denied).toBeGreaterThan(0);
    expect(alone.allowed).toBeLessThanOrEqual(KEPT + REFILL * duration + 1);
    expect(alone.allowed).toBeGreaterThan(FULL ? 0.9 * REFILL * duration : KEPT);
  });
});
