import { connect } from 'node:net';
import { callTemplate, TENANT } from '../../bench/load/call-template.js';
import { type CallObserver, ClientConnection } from '../../bench/load/client-connection.js';
import { descriptor, request } from '../../stall/wire.js';

/** The domain of all calls of a soak. */
export const SOAK_DOMAIN = 'soak';
/** Tenants who call, each with a bucket of its own. */
const TENANTS = 5000;
const CONNECTIONS = 16;
const TICK_MS = 2;
/** Calls under way while it is found out how many a second there can be at most. */
const CROWD = 400;

/** The policy of a soak: whatever becomes of Redis, every call is answered with a decision. */
export const SOAK_POLICY = `domain: ${SOAK_DOMAIN}
on_store_failure: allow
descriptors:
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: 100, tokens_per_fill: 10, fill_interval: 1s } }
`;

/** Calls at a steady rate, on connections that stay; prepared bytes, which cost little. Close it. */
export class SoakLoad implements CallObserver {
  private readonly connections: ClientConnection[] = [];
  private timer: NodeJS.Timeout | undefined;
  private turn = 0;
  private tenant = 0;
  answers = 0;
  sent = 0;
  /** Calls that were due and could not be sent: too many had no answer. */
  skipped = 0;
  /** Why a call or a connection failed, the first time. */
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

  /** Answers a second when calls are always waiting. */
  async saturation(ms: number): Promise<number> {
    this.timer = setInterval(() => this.send(CROWD - (this.sent - this.answers)), TICK_MS);
    await sleep(ms / 4);
    const before = this.answers;
    const startMs = performance.now();
    await sleep(ms);
    const rate = ((this.answers - before) / (performance.now() - startMs)) * 1000;
    clearInterval(this.timer);
    return rate;
  }

  /** So many calls a second from now on. */
  begin(rate: number): void {
    let doneMs = performance.now();
    this.timer = setInterval(() => {
      const nowMs = performance.now();
      // What was missed while this process was held up stays missed.
      const due = Math.floor(Math.min(nowMs - doneMs, 50) * (rate / 1000));
      doneMs += Math.max((due * 1000) / rate, nowMs - doneMs - 50);
      this.skipped += due - this.send(due);
    }, TICK_MS);
  }

  /** No more calls. */
  end(): void {
    clearInterval(this.timer);
  }

  close(): void {
    this.end();
    for (const connection of this.connections) connection.destroy();
  }

  answered(): void {
    this.answers++;
  }

  turned(): void {}

  failed(reason: string): void {
    this.failure ??= reason;
  }

  /** Sends so many, if it can; returns how many it did. */
  private send(count: number): number {
    let done = 0;
    for (let tries = 0; done < count && tries < CONNECTIONS; ) {
      const connection = this.connections[this.turn++ % CONNECTIONS] as ClientConnection;
      if (!connection.canCall()) {
        tries++;
        continue;
      }
      connection.call(this.tenant++ % TENANTS, performance.now() * 1000);
      done++;
    }
    this.sent += done;
    for (const connection of this.connections) connection.flush();
    return done;
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
