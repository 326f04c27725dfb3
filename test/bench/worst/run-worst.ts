import { tableLines } from '../../../src/cli/table.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { descriptor } from '../../support/policy/decider.js';
import { closeAll } from '../../support/process/close-later.js';
import { httpRequest } from '../../support/process/http-client.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { fetchTools } from '../../support/process/tools.js';
import { startRedis } from '../../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { cpuMicros } from '../cpu.js';
import { messageOf, policyText } from '../load/policy.js';
import { runLoadClient } from '../load/run-load-client.js';
import { matchesFilter } from '../options.js';
import {
  domainOf,
  encode,
  exceededBound,
  NUMBER,
  type WorstCase,
  worstCases,
  worstPolicy,
} from './worst-requests.js';

/** Maximum cost, as a multiple of an ordinary request in memory: 2 ms and 3 ms if that takes 8 µs. */
const MAX_RATIOS = { memory: 250, Redis: 375 };
const STORES = ['memory', 'Redis'] as const;
type Store = (typeof STORES)[number];

/** Number of requests that are sent at once. */
const AT_ONCE = 4;
const COUNTS = { ordinary: 200_000, warmUp: 1000, measured: 500 };
const QUICK_COUNTS = { ordinary: 200, warmUp: 1, measured: 2 };

async function sendAll(count: number, send: () => Promise<unknown>): Promise<void> {
  let sent = 0;
  const sendNext = async (): Promise<void> => {
    while (sent++ < count) await send();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sendNext));
}

/** Sends the worst requests to a server. */
class WorstClient {
  readonly #server: WeirServer;
  readonly #client: RlsClient;
  readonly #counts: typeof COUNTS;
  #next = 0;

  constructor(server: WeirServer, counts: typeof COUNTS) {
    this.#server = server;
    this.#client = new RlsClient(server.grpcPort);
    this.#counts = counts;
  }

  /** Returns the server's CPU time for each request. Throws if it decides or gives up requests unexpectedly. */
  async measure(one: WorstCase): Promise<number> {
    const { pid } = this.#server.process;
    const { warmUp, measured } = this.#counts;
    const before = await this.#givenUp(domainOf(one));
    const send = await this.#sender(one, warmUp + measured);
    await sendAll(warmUp, send);
    const cpu = cpuMicros(pid);
    await sendAll(measured, send);
    const micros = (cpuMicros(pid) - cpu) / measured;
    const after = await this.#givenUp(domainOf(one));
    const bound = exceededBound(one);
    if (bound !== undefined) before[bound] = (before[bound] ?? 0) + warmUp + measured;
    if (JSON.stringify(after) !== JSON.stringify(before)) {
      const [expected, found] = [before, after].map((counts) => JSON.stringify(counts));
      throw new Error(`${one[0].name}, ${one[1].name}: given up ${found}, not ${expected}`);
    }
    return micros;
  }

  /** Returns a function that sends one of `count` requests with different values. Places the holds that they end. */
  async #sender(one: WorstCase, count: number): Promise<() => Promise<unknown>> {
    const [{ sent, descriptors }] = one;
    const domain = domainOf(one);
    const template = encode(sent, domain, descriptors).toString('latin1');
    const message = (): Buffer =>
      Buffer.from(template.replaceAll(NUMBER, String(++this.#next).padStart(NUMBER.length, '0')), 'latin1');
    if (sent === 'json') return () => this.#postJson(message());
    if (sent === 'grpc') return () => this.#ask(message());
    const ends: Buffer[] = [];
    await sendAll(count, async () => {
      const { dynamicMetadata } = await this.#ask(message());
      ends.push(encode(sent, domain, [descriptor([`hold=${dynamicMetadata?.['hold']}`])]));
    });
    return () => this.#ask(ends.pop() as Buffer);
  }

  async #ask(message: Buffer) {
    const { response, details } = await this.#client.send(message);
    if (response === undefined) throw new Error(`a request got no decision: ${details}`);
    return response;
  }

  async #postJson(body: Buffer): Promise<void> {
    // Unlike httpRequest, fetch keeps its connections open.
    const response = await fetch(`http://127.0.0.1:${this.#server.httpPort}/json`, { method: 'POST', body });
    await response.arrayBuffer();
    if (![200, 429].includes(response.status)) throw new Error(`/json answered ${response.status}`);
  }

  /**
   * Returns the number of requests to a domain that got no decision, by reason. Requests that have waited too long for
   * their turn are omitted, because a busy machine causes them.
   */
  async #givenUp(domain: string): Promise<Record<string, number>> {
    const { body } = await httpRequest(this.#server.httpPort, '/metrics');
    const series = new RegExp(
      `^weir_requests_given_up_total\\{domain="${domain}",reason="(?!late")(\\w+)"\\} (\\d+)$`,
      'gm',
    );
    return Object.fromEntries([...body.matchAll(series)].map(([, why, count]) => [why, Number(count)]));
  }
}

/**
 * Tenants of ordinary requests. The most expensive requests have new values each time, so they are not compared with a
 * request that weir recognizes by its bytes.
 */
const TENANTS = 1000;

/** Sends ordinary requests: one descriptor of one of many tenants. Returns the CPU time of each. */
async function sendOrdinary({ grpcPort, process }: WeirServer, requests: number): Promise<number> {
  const before = cpuMicros(process.pid);
  await runLoadClient({
    ...{ host: '127.0.0.1', port: grpcPort, tls: false, ends: false, rate: undefined, requests },
    ...{ connections: 4, streams: 16, tenants: TENANTS, firstTenant: 0 },
    message: Buffer.from(messageOf(1, 10)).toString('base64'),
  });
  return (cpuMicros(process.pid) - before) / requests;
}

/** Starts a server with the policies of `cases`, calls `use`, and stops the server. */
async function withServer(
  store: Store,
  cases: readonly WorstCase[],
  env: NodeJS.ProcessEnv,
  use: (server: WeirServer) => Promise<void>,
): Promise<void> {
  const folder = new TempDir();
  folder.write('bench.yaml', policyText(10, 'fast refill'));
  for (const one of cases) folder.write(`${domainOf(one)}.yaml`, worstPolicy(one));
  try {
    const redis = store === 'Redis' && { REDIS_URL: `127.0.0.1:${(await startRedis()).port}` };
    await use(await startWeir({ env: { ...env, ...redis, CONFIG_PATH: folder.path } }));
  } finally {
    await closeAll();
  }
}

/** Returns the cells of a row. The last one names the bounds that the request exceeds. */
function cells(one: WorstCase, micros: Record<Store, number>, ordinary: number): string[] {
  const bound = exceededBound(one);
  const notes =
    bound === undefined ? [] : [`above MAX_${bound === 'match_work' ? 'MATCH_WORK' : 'REGEX_VALUE_BYTES'}`];
  const numbers = STORES.flatMap((store) => {
    const ratio = micros[store] / ordinary;
    if (ratio > MAX_RATIOS[store]) notes.push(`MORE THAN ${MAX_RATIOS[store]} × WITH ${store}`);
    return [micros[store].toFixed(0), ratio.toFixed(0)];
  });
  return [one[0].name, one[1].name, ...numbers, notes.join('; ')];
}

const COLUMNS = [
  ...['request', 'policy'].map((heading) => ({ heading, side: 'left' as const })),
  ...['memory µs', '/ ordinary', 'Redis µs', '/ ordinary'].map((heading) => ({
    heading,
    side: 'right' as const,
  })),
  { heading: '', side: 'left' as const },
];

/** `npm run bench -- worst`: prints the cost of the most expensive legal requests. Returns their number. */
export async function runWorst(
  { quick, filters }: { readonly quick: boolean; readonly filters: readonly string[] },
  printProgress: (line: string) => void,
): Promise<number> {
  fetchTools(['redis-server']);
  const counts = quick ? QUICK_COUNTS : COUNTS;
  const cases = worstCases().filter(([{ name }]) => matchesFilter(name, filters));
  const measured = new Map(cases.map((one) => [one, { memory: 0, Redis: 0 }]));
  let ordinary = 0;
  for (const store of STORES) {
    for (const metadata of [false, true]) {
      const some = cases.filter(([{ policy }]) => (policy === 'metadata') === metadata);
      await withServer(store, some, { RESPONSE_DYNAMIC_METADATA: String(metadata) }, async (server) => {
        await sendOrdinary(server, counts.ordinary);
        if (ordinary === 0) ordinary = await sendOrdinary(server, counts.ordinary);
        const client = new WorstClient(server, counts);
        for (const one of some) {
          printProgress(`${store}: ${one[0].name}, ${one[1].name}`);
          (measured.get(one) as Record<Store, number>)[store] = await client.measure(one);
        }
      });
    }
  }
  console.log(`CPU time of the server per request, Node ${process.version}`);
  console.log(`An ordinary request of one of ${TENANTS} tenants takes ${ordinary.toFixed(1)} µs in memory.`);
  const rows = [...measured].map(([one, micros]) => cells(one, micros, ordinary));
  console.log(tableLines(COLUMNS, rows).join('\n'));
  return cases.length;
}
