import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Random } from '../../fuzz/random.js';
import type { Caller } from '../../support/envoy/caller.js';
import { closeLater } from '../../support/process/close-later.js';
import { sleep } from '../sleep.js';

/** An upstream that takes `ms` to 2 × `ms` milliseconds for a response, and counts its concurrent requests. */
export class SlowUpstream {
  private readonly server: Server;
  private now = 0;
  most = 0;

  private constructor(ms: number, random: Random) {
    this.server = createServer((_request, response) => {
      this.most = Math.max(this.most, ++this.now);
      const timer = setTimeout(() => response.end('done\n'), ms + random.below(ms));
      response.once('close', () => {
        clearTimeout(timer);
        this.now--;
      });
    });
  }

  static async start(ms: number, random: Random): Promise<SlowUpstream> {
    const upstream = new SlowUpstream(ms, random);
    await new Promise<void>((resolve) => upstream.server.listen(0, '127.0.0.1', resolve));
    closeLater(upstream.server, (server) => {
      server.closeAllConnections();
      server.close();
    });
    return upstream;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }
}

/** Clients that each have one request under way. A denied client comes back, and one of five leaves early. */
export class HoldClients {
  /** Number of responses by status. */
  readonly statuses = new Map<number, number>();
  /** Number of requests that ended without a response, because their clients left or their Envoy was killed. */
  unanswered = 0;
  private isRunning = true;
  private readonly caller: string;
  private readonly random: Random;
  private readonly callers: readonly Caller[];
  private readonly aborts = new Set<() => void>();

  /** Sends the requests of `caller` with `callers`, which may be replaced in place. */
  constructor(caller: string, callers: readonly Caller[], random: Random) {
    this.caller = caller;
    this.callers = callers;
    this.random = random;
  }

  /** Sends the requests of `count` clients until {@link stop}. */
  async run(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.one()));
  }

  /** Aborts all requests, and sends no more. */
  stop(): void {
    this.isRunning = false;
    for (const abort of this.aborts) abort();
  }

  /** Returns the counts as text. */
  summary(): string {
    const answered = [...this.statuses].map(([status, count]) => `${count} times ${status}`);
    return [...answered, `${this.unanswered} times no response`].join(', ');
  }

  private async one(): Promise<void> {
    const { random } = this;
    while (this.isRunning) {
      const open = random.pick(this.callers).get('/', { tenant: this.caller });
      this.aborts.add(open.abort);
      const timer = random.oneIn(5) ? setTimeout(open.abort, random.below(1000)) : undefined;
      const status = await open.status;
      await open.over;
      clearTimeout(timer);
      this.aborts.delete(open.abort);
      if (status === undefined) this.unanswered++;
      else this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      if (status !== 200 && this.isRunning) await sleep(200 + random.below(400));
    }
  }
}
