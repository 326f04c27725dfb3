/*
 * A class floods a bucket that it shares with another class, through a real Envoy whose routes set the class. The other
 * class stays within what the first one keeps, and is never denied. With WEIR_TEST_FULL, the flood lasts a minute.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
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

/**
 * Sends requests to a path at a rate for {@link SECONDS}, but only `inFlight` at a time, and counts the answers. HEAD
 * has answers without bodies, so a generator of a few lines reaches rates that node:http cannot.
 */
async function send(port: number, path: string, perSecond: number, inFlight: number): Promise<Answers> {
  const answers: Answers = { allowed: 0, denied: 0, others: [] };
  const head = `HEAD ${path} HTTP/1.1\r\nhost: weir\r\n\r\n`;
  const idle = await Promise.all(Array.from({ length: inFlight }, () => connected(port)));
  const start = performance.now();
  let [sent, open] = [0, 0];
  await new Promise<void>((resolve, reject) => {
    for (const socket of idle) {
      let text = '';
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1');
        if (!text.endsWith('\r\n\r\n')) return;
        const status = Number(text.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
        text = '';
        if (status === 200) answers.allowed++;
        else if (status === 429) answers.denied++;
        else answers.others.push(status);
        open--;
        idle.push(socket);
        sendDue();
      });
      socket.once('close', () => reject(new Error(`Envoy closed a connection to ${path}`)));
    }
    const sendDue = (): void => {
      const elapsed = (performance.now() - start) / 1000;
      const due = Math.floor(Math.min(elapsed, SECONDS) * perSecond);
      for (; sent < due && idle.length > 0; sent++) {
        open++;
        idle.pop()?.write(head);
      }
      // Requests that could not be sent in time are not made up for.
      if (elapsed >= SECONDS) sent = due;
      if (elapsed >= SECONDS && open === 0) finish();
    };
    const timer = setInterval(sendDue, TICK);
    const finish = (): void => {
      clearInterval(timer);
      for (const socket of idle) socket.removeAllListeners('close').destroy();
      resolve();
    };
  });
  return answers;
}

/** Returns a connection to a port of this machine. */
async function connected(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  return socket;
}

describe.each(Object.entries(STORES))('with buckets in %s', (name, startStore) => {
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
    const rateOf = ({ allowed, denied }: Answers, seconds: number): number =>
      Math.round((allowed + denied) / seconds);
    if (FULL)
      process.stdout.write(
        `${name}: batch ${rateOf(batch, together)}/s, ${batch.allowed} allowed, ${batch.denied} denied; interactive ` +
          `${rateOf(interactive, together)}/s, ${interactive.allowed} allowed, ${interactive.denied} denied; ` +
          `${together.toFixed(1)} s\n`,
      );
    expect(interactive).toMatchObject({ denied: 0, others: [] });
    expect(interactive.allowed).toBeGreaterThan(CALM);
    expect(batch.denied).toBeGreaterThan(0);
    expect(batch.others).toEqual([]);
    expect(batch.allowed + interactive.allowed).toBeLessThanOrEqual(CAPACITY + REFILL * together + 1);

    const [alone, duration] = await timed(() => send(port, '/b/batch', FLOOD, IN_FLIGHT));
    if (FULL)
      process.stdout.write(
        `${name}: batch alone ${rateOf(alone, duration)}/s, ${alone.allowed} allowed in ${duration.toFixed(1)} s\n`,
      );
    expect(alone.denied).toBeGreaterThan(0);
    expect(alone.allowed).toBeLessThanOrEqual(KEPT + REFILL * duration + 1);
    expect(alone.allowed).toBeGreaterThan(FULL ? 0.9 * REFILL * duration : KEPT);
  });
});
