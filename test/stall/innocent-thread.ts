/*
 * The innocent caller's thread. It sends calls at a fixed rate, even if earlier calls are not answered yet, and records
 * the latency of each call. The latency begins when the call is due, and ends when the answer is complete.
 */
import { connect } from 'node:net';
import { parentPort } from 'node:worker_threads';
import { descriptor, request } from '../attack/wire.js';
import { callTemplate } from '../bench/load/call-template.js';
import { type CallObserver, ClientConnection } from '../bench/load/client-connection.js';
import type { InnocentOrder, InnocentResult } from './innocent.js';

/** Time for which the thread sleeps between checks. A due call is sent within about twice this time. */
const SLEEP_MS = 0.5;
/** Maximum time until all connections are open, and maximum wait for answers after the last call. */
const TIMEOUT_MS = 30_000;

const nowMicros = (): number => performance.now() * 1000;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

class Innocent implements CallObserver {
  private readonly latenciesMs: number[] = [];
  private readonly connections: ClientConnection[] = [];
  private readonly order: InnocentOrder;
  private sent = 0;
  private startMicros = 0;
  private endMicros = Number.POSITIVE_INFINITY;
  private failure: string | undefined;
  private onFailure: () => void = () => {};
  private readonly broken = new Promise<void>((resolve) => {
    this.onFailure = resolve;
  });

  constructor(order: InnocentOrder) {
    this.order = order;
  }

  async begin(): Promise<void> {
    const { port, connections } = this.order;
    const timer = setTimeout(() => this.failed('a connection was not answered'), TIMEOUT_MS);
    const message = request(this.order.domain, descriptor(['caller', 'innocent']));
    const template = callTemplate(message, 'http', `127.0.0.1:${port}`);
    for (let i = 0; i < connections; i++) {
      const socket = connect(port, '127.0.0.1').setNoDelay(true);
      const connection = new ClientConnection(socket, template, this);
      this.connections.push(connection);
      await Promise.race([connection.ready(), this.broken]);
    }
    clearTimeout(timer);
    this.startMicros = nowMicros();
    this.sendDueCalls();
  }

  answered(dueMicros: number, overLimit: boolean): void {
    this.latenciesMs.push((nowMicros() - dueMicros) / 1000);
    if (overLimit) this.failure ??= 'OVER_LIMIT';
  }

  chunkRead(): void {}

  failed(reason: string): void {
    this.failure ??= `"${reason}"`;
    this.onFailure();
  }

  /** Stops sending. Resolves when all calls are answered. */
  async end(): Promise<InnocentResult> {
    this.endMicros = nowMicros();
    const last = performance.now() + TIMEOUT_MS;
    while (this.latenciesMs.length < this.sent && this.failure === undefined && performance.now() < last) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    for (const connection of this.connections) connection.destroy();
    const sorted = this.latenciesMs.sort((one, other) => one - other);
    const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
    return {
      calls: this.sent,
      unanswered: this.sent - sorted.length,
      failure: this.failure,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      p999Ms: at(0.999),
      longestMs: at(1),
    };
  }

  private sendDueCalls(): void {
    const now = Math.min(nowMicros(), this.endMicros);
    const micros = 1e6 / this.order.rate;
    const due = Math.floor((now - this.startMicros) / micros) + 1;
    while (this.sent < due && this.failure === undefined) {
      const connection = this.connections[this.sent % this.connections.length] as ClientConnection;
      if (!connection.canCall()) break;
      connection.call(0, this.startMicros + this.sent * micros);
      this.sent++;
    }
    for (const connection of this.connections) connection.flush();
    if (this.endMicros !== Number.POSITIVE_INFINITY) return;
    Atomics.wait(sleeper, 0, 0, SLEEP_MS);
    setImmediate(() => this.sendDueCalls());
  }
}

let innocent: Innocent | undefined;

async function handle(order: InnocentOrder | 'end'): Promise<void> {
  if (order !== 'end') {
    innocent = new Innocent(order);
    await innocent.begin();
    parentPort?.postMessage('started');
  } else if (innocent !== undefined) {
    parentPort?.postMessage(await innocent.end());
  }
}

parentPort?.on('message', (order: InnocentOrder | 'end') => void handle(order));
