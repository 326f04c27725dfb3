import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { seededRandom } from '../../support/limiter/seeded-random.js';
import { type CallTemplate, callTemplate } from './call-template.js';
import { type CallObserver, ClientConnection } from './client-connection.js';
import { type LoadResult, percentiles } from './load-result.js';
import { endMessageOf } from './policy.js';

/**
 * Options of a load generator for cases that h2load does not support: a different tenant in each request, DATA directly
 * after HEADERS, and a fixed rate. The generator is a separate process. It reads the options as JSON from its argument,
 * and prints a LoadResult as JSON. It checks every answer, and ends with an error after a failed call.
 */
export interface LoadClientOptions {
  readonly host: string;
  readonly port: number;
  /** Ports of further servers. The connections are spread evenly over all servers. */
  readonly otherPorts?: readonly number[];
  readonly tls: boolean;
  /** An encoded RateLimitRequest, in base64. */
  readonly message: string;
  readonly requests: number;
  readonly connections: number;
  /** Maximum number of calls in flight on each connection; at a fixed rate, only the server limits this number. */
  readonly streams: number;
  /**
   * Number of tenants, starting with `firstTenant`. Calls use all tenants equally often, in a scattered order, unless
   * `zipf` is set.
   */
  readonly tenants: number;
  readonly firstTenant: number;
  /** Whether the n-th tenant sends 1/n as many calls as the first one, in random order. */
  readonly zipf?: boolean;
  /** Requests per second; undefined to send the next request after each answer. */
  readonly rate: number | undefined;
  /** Whether calls with hold tokens of earlier answers end requests, in turns with the calls of `message`. */
  readonly ends: boolean;
}

/** Pause between checks for due calls at a fixed rate. A call is sent at most about twice this time late. */
const SLEEP_MS = 0.05;
/** A prime larger than any number of tenants, so that the calls visit all tenants in a scattered order. */
const TENANT_STEP = 15_485_863;
/** Number of random calls after which the same tenants follow again; a power of 2. */
const ZIPF_CALLS = 1 << 16;

/** Returns random tenants, of which the n-th occurs 1/n as often as the first one. */
function zipfTenants(tenants: number): Uint32Array {
  const random = seededRandom(1);
  const shares = new Float64Array(tenants);
  let total = 0;
  for (let i = 0; i < tenants; i++) {
    total += 1 / (i + 1);
    shares[i] = total;
  }
  return Uint32Array.from({ length: ZIPF_CALLS }, () => {
    const at = random() * total;
    return shares.findIndex((share) => at < share);
  });
}

function nowMicros(): number {
  return performance.now() * 1000;
}

class Load implements CallObserver {
  private readonly options: LoadClientOptions;
  private readonly latencies: Float64Array;
  private readonly connections: ClientConnection[] = [];
  private readonly zipf: Uint32Array | undefined;
  private readonly sleeper = new Int32Array(new SharedArrayBuffer(4));
  private sent = 0;
  private done = 0;
  private overLimit = 0;
  private startMicros = 0;
  private startCpu = process.cpuUsage();
  private finished: (result: LoadResult) => void = () => {};

  constructor(options: LoadClientOptions) {
    this.options = options;
    this.latencies = new Float64Array(options.requests);
    this.zipf = options.zipf === true ? zipfTenants(options.tenants) : undefined;
  }

  async run(): Promise<LoadResult> {
    const { host, port, tls, message, connections, ends } = this.options;
    const templateOf = (bytes: Uint8Array): CallTemplate =>
      callTemplate(bytes, tls ? 'https' : 'http', `${host}:${port}`);
    const template = templateOf(Buffer.from(message, 'base64'));
    const endTemplateOf = ends ? (length: number) => templateOf(endMessageOf(length)) : undefined;
    for (let i = 0; i < connections; i++) {
      const ports = [port, ...(this.options.otherPorts ?? [])];
      const socket = await this.open(ports[i % ports.length] as number);
      const connection = new ClientConnection(socket, template, this, endTemplateOf);
      this.connections.push(connection);
      await connection.ready();
    }
    this.startCpu = process.cpuUsage();
    this.startMicros = nowMicros();
    const result = new Promise<LoadResult>((resolve) => {
      this.finished = resolve;
    });
    if (this.options.rate !== undefined) this.sendDueCalls(this.options.rate);
    else {
      for (const connection of this.connections) {
        this.chunkRead(connection);
        connection.flush();
      }
    }
    return result;
  }

  answered(startMicros: number, overLimit: boolean): void {
    const now = nowMicros();
    this.latencies[this.done++] = now - startMicros;
    if (overLimit) this.overLimit++;
    if (this.done === this.options.requests) this.finish(now);
  }

  failed(reason: string): void {
    process.stderr.write(`load client: ${reason}\n`);
    process.exit(1);
  }

  private open(port: number): Promise<Socket> {
    const { host, tls } = this.options;
    return new Promise((resolve, reject) => {
      const socket = tls
        ? connectTls({ host, port, ALPNProtocols: ['h2'], rejectUnauthorized: false })
        : connect(port, host);
      socket.once(tls ? 'secureConnect' : 'connect', () => resolve(socket.setNoDelay(true)));
      socket.once('error', reject);
    });
  }

  /** Without a fixed rate, sends calls until the maximum number of calls is in flight. */
  chunkRead(connection: ClientConnection): void {
    const { requests, streams, rate } = this.options;
    if (rate !== undefined || this.connections.length < this.options.connections) return;
    while (this.sent < requests && connection.inFlight < streams && connection.canCall()) {
      connection.call(this.tenant(this.sent++), nowMicros());
    }
  }

  /** Sends the due calls, and then sleeps, because setTimeout supports only whole milliseconds. */
  private sendDueCalls(rate: number): void {
    const { requests } = this.options;
    const microsPerCall = 1e6 / rate;
    const due = Math.min(requests, Math.floor((nowMicros() - this.startMicros) / microsPerCall) + 1);
    while (this.sent < due) {
      const connection = this.connections[this.sent % this.connections.length] as ClientConnection;
      // The latency of a delayed call starts at its due time, as for a real caller.
      if (!connection.canCall()) break;
      connection.call(this.tenant(this.sent), this.startMicros + this.sent * microsPerCall);
      this.sent++;
    }
    for (const connection of this.connections) connection.flush();
    if (this.done === requests) return;
    Atomics.wait(this.sleeper, 0, 0, SLEEP_MS);
    setImmediate(() => this.sendDueCalls(rate));
  }

  private tenant(call: number): number {
    const { tenants, firstTenant } = this.options;
    if (this.zipf !== undefined) return firstTenant + (this.zipf[call & (ZIPF_CALLS - 1)] as number);
    return firstTenant + ((call * TENANT_STEP) % tenants);
  }

  private finish(now: number): void {
    const { user, system } = process.cpuUsage(this.startCpu);
    for (const connection of this.connections) connection.destroy();
    this.finished({
      requests: this.done,
      seconds: (now - this.startMicros) / 1e6,
      ...percentiles(this.latencies),
      clientMicros: user + system,
      overLimit: this.overLimit,
    });
  }
}

async function main(): Promise<void> {
  const options = JSON.parse(process.argv[2] as string) as LoadClientOptions;
  process.stdout.write(`${JSON.stringify(await new Load(options).run())}\n`);
}

if (require.main === module) void main();
