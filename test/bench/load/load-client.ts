import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { callTemplate } from './call-template.js';
import { type CallObserver, ClientConnection } from './client-connection.js';
import { type LoadResult, percentiles } from './load-result.js';

/**
 * A load generator for what h2load cannot do: another tenant in each request, HEADERS directly followed by their DATA,
 * a fixed rate. Runs in a process of its own: takes a {@link LoadOrder} as JSON in its argument, prints a LoadResult as
 * JSON. Answers are checked, each of them: one failed call fails the run.
 */
export interface LoadOrder {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** An encoded RateLimitRequest, base64. */
  readonly message: string;
  readonly requests: number;
  readonly connections: number;
  /** Calls under way on each connection; at a fixed rate not limited but by the server. */
  readonly streams: number;
  /** Tenants `firstTenant` to `firstTenant + tenants - 1`, scattered; each as often as any other. */
  readonly tenants: number;
  readonly firstTenant: number;
  /** Requests a second; undefined: as fast as answers come. */
  readonly rate: number | undefined;
}

/** How long the process sleeps between looks at a fixed rate; what is due goes out within about twice that. */
const NAP_MS = 0.05;
/** A prime beyond any number of tenants: a walk over all of them in no order. */
const STRIDE = 15_485_863;

function nowMicros(): number {
  return performance.now() * 1000;
}

class Load implements CallObserver {
  private readonly order: LoadOrder;
  private readonly latencies: Float64Array;
  private readonly connections: ClientConnection[] = [];
  private readonly sleeper = new Int32Array(new SharedArrayBuffer(4));
  private sent = 0;
  private done = 0;
  private overLimit = 0;
  private startMicros = 0;
  private startCpu = process.cpuUsage();
  private finished: (result: LoadResult) => void = () => {};

  constructor(order: LoadOrder) {
    this.order = order;
    this.latencies = new Float64Array(order.requests);
  }

  async run(): Promise<LoadResult> {
    const { host, port, tls, message, connections } = this.order;
    const template = callTemplate(Buffer.from(message, 'base64'), tls ? 'https' : 'http', `${host}:${port}`);
    for (let i = 0; i < connections; i++) {
      const socket = await this.open();
      const connection = new ClientConnection(socket, template, this);
      this.connections.push(connection);
      await connection.ready();
    }
    this.startCpu = process.cpuUsage();
    this.startMicros = nowMicros();
    const result = new Promise<LoadResult>((resolve) => {
      this.finished = resolve;
    });
    if (this.order.rate !== undefined) this.keepPace(this.order.rate);
    else {
      for (const connection of this.connections) {
        this.turned(connection);
        connection.flush();
      }
    }
    return result;
  }

  answered(startMicros: number, overLimit: boolean): void {
    const now = nowMicros();
    this.latencies[this.done++] = now - startMicros;
    if (overLimit) this.overLimit++;
    if (this.done === this.order.requests) this.finish(now);
  }

  failed(reason: string): void {
    process.stderr.write(`load client: ${reason}\n`);
    process.exit(1);
  }

  private open(): Promise<Socket> {
    const { host, port, tls } = this.order;
    return new Promise((resolve, reject) => {
      const socket = tls
        ? connectTls({ host, port, ALPNProtocols: ['h2'], rejectUnauthorized: false })
        : connect(port, host);
      socket.once(tls ? 'secureConnect' : 'connect', () => resolve(socket.setNoDelay(true)));
      socket.once('error', reject);
    });
  }

  /** Closed loop: as many calls under way as allowed, looked at whenever answers have come. */
  turned(connection: ClientConnection): void {
    const { requests, streams, rate } = this.order;
    if (rate !== undefined || this.connections.length < this.order.connections) return;
    while (this.sent < requests && connection.inFlight < streams && connection.canCall()) {
      connection.call(this.tenant(this.sent++), nowMicros());
    }
  }

  /** Sends what is due, then sleeps a little: setTimeout knows whole milliseconds only. */
  private keepPace(rate: number): void {
    const { requests } = this.order;
    const microsPerCall = 1e6 / rate;
    const due = Math.min(requests, Math.floor((nowMicros() - this.startMicros) / microsPerCall) + 1);
    while (this.sent < due) {
      const connection = this.connections[this.sent % this.connections.length] as ClientConnection;
      // Waits for its turn with its intended time, as a caller would.
      if (!connection.canCall()) break;
      connection.call(this.tenant(this.sent), this.startMicros + this.sent * microsPerCall);
      this.sent++;
    }
    for (const connection of this.connections) connection.flush();
    if (this.done === requests) return;
    Atomics.wait(this.sleeper, 0, 0, NAP_MS);
    setImmediate(() => this.keepPace(rate));
  }

  private tenant(call: number): number {
    const { tenants, firstTenant } = this.order;
    return firstTenant + ((call * STRIDE) % tenants);
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
  const order = JSON.parse(process.argv[2] as string) as LoadOrder;
  process.stdout.write(`${JSON.stringify(await new Load(order).run())}\n`);
}

if (require.main === module) void main();
