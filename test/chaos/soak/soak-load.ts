import { connect } from 'node:net';
import { descriptor, request } from '../../attack/wire.js';
import { callTemplate, TENANT } from '../../bench/load/call-template.js';
import { type CallObserver, ClientConnection } from '../../bench/load/client-connection.js';
import { sleep } from '../sleep.js';

/** The domain of all calls. */
const SOAK_DOMAIN = 'soak';
/** Number of tenants. Each tenant has a separate bucket. */
const TENANTS = 5000;
const CONNECTIONS = 16;
const TICK_MS = 2;
/** Number of calls in flight during the measurement of the maximum rate. */
const SATURATING_CALLS = 400;

/** The policy answers every call with a decision, even during Redis faults. */
export const SOAK_POLICY = `domain: ${SOAK_DOMAIN}
on_store_failure: allow
descriptors:
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: 100, tokens_per_fill: 10, fill_interval: 1s } }
`;

/**
 * Load generator that calls weir at a steady rate on a fixed number of connections. It sends prepared bytes, so that it
 * uses little CPU. Close it after use.
 */
export class SoakLoad implements CallObserver {
  private readonly connections: ClientConnection[] = [];
  private timer: NodeJS.Timeout | undefined;
  private nextConnection = 0;
  private nextTenant = 0;
  answers = 0;
  sent = 0;
  /** Number of calls that were not sent, because too many calls had no answer. */
  skipped = 0;
  /** Reason of the first failed call or connection. */
  failure: string | undefined;

  static async connect(port: number): Promise<SoakLoad> {
    const load = new SoakLoad();
    const message = request(SOAK_DOMAIN, descriptor(['tenant', TENANT]));
    const template = callTemplate(message, 'http', `127.0.0.1:${port}`);
    for (let at = 0; at < CONNECTIONS; at++) {
      const socket = connect(port, '127.0.0.1').setNoDelay(true);
      const connection = new ClientConnection(socket, template, load);
      load.connections.push(connection);
      await connection.ready();
    }
    return load;
  }

  /** Measures the maximum rate for `ms`. Resolves with the number of answers per second. */
  async measureMaxRate(ms: number): Promise<number> {
    this.timer = setInterval(() => this.send(SATURATING_CALLS - (this.sent - this.answers)), TICK_MS);
    await sleep(ms / 4);
    const before = this.answers;
    const startMs = performance.now();
    await sleep(ms);
    const rate = ((this.answers - before) / (performance.now() - startMs)) * 1000;
    clearInterval(this.timer);
    return rate;
  }

  /** Starts to send `rate` calls per second. */
  start(rate: number): void {
    let sentUntilMs = performance.now();
    this.timer = setInterval(() => {
      const nowMs = performance.now();
      // After a delay of this process, missed calls are not sent.
      const due = Math.floor(Math.min(nowMs - sentUntilMs, 50) * (rate / 1000));
      sentUntilMs += Math.max((due * 1000) / rate, nowMs - sentUntilMs - 50);
      this.skipped += due - this.send(due);
    }, TICK_MS);
  }

  /** Stops sending calls. */
  stop(): void {
    clearInterval(this.timer);
  }

  close(): void {
    this.stop();
    for (const connection of this.connections) connection.destroy();
  }

  answered(): void {
    this.answers++;
  }

  chunkRead(): void {}

  failed(reason: string): void {
    this.failure ??= reason;
  }

  /** Sends `count` calls, or fewer if the connections are busy. Returns the number of sent calls. */
  private send(count: number): number {
    let sent = 0;
    for (let busyConnections = 0; sent < count && busyConnections < CONNECTIONS; ) {
      const connection = this.connections[this.nextConnection++ % CONNECTIONS] as ClientConnection;
      if (!connection.canCall()) {
        busyConnections++;
        continue;
      }
      connection.call(this.nextTenant++ % TENANTS, performance.now() * 1000);
      sent++;
    }
    this.sent += sent;
    for (const connection of this.connections) connection.flush();
    return sent;
  }
}
