import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { Random } from '../fuzz/random.js';

/** Faults of a {@link ChaosProxy}. */
export type Mischief =
  | { readonly kind: 'pass' }
  /** Delays all data by this many milliseconds. */
  | { readonly kind: 'delay'; readonly ms: number }
  /**
   * Drops all data from now on, on existing and new connections, which remain open: on those from an address, or on
   * all.
   */
  | { readonly kind: 'drop'; readonly from?: string }
  /** Forwards only the beginning of a piece, and then ends the connection (truncate) or resets it. */
  | { readonly kind: 'truncate' | 'reset'; readonly oneIn: number }
  /** Splits every piece at random places. */
  | { readonly kind: 'split' };

const PASS: Mischief = { kind: 'pass' };

/** Bytes in one direction, in order, each with the earliest time to forward it. */
class Lane {
  private readonly to: Socket;
  private readonly waiting: { readonly dueMs: number; readonly bytes: Buffer }[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(to: Socket) {
    this.to = to;
  }

  put(bytes: Buffer, afterMs: number): void {
    if (afterMs === 0 && this.waiting.length === 0) {
      this.to.write(bytes);
      return;
    }
    const dueMs = Math.max(performance.now() + afterMs, this.waiting.at(-1)?.dueMs ?? 0);
    this.waiting.push({ dueMs, bytes });
    this.timer ??= setTimeout(() => this.next(), afterMs);
  }

  clear(): void {
    clearTimeout(this.timer);
    this.waiting.length = 0;
  }

  /** Forwards one piece at a time, so that each is a separate packet. */
  private next(): void {
    this.timer = undefined;
    const first = this.waiting.shift();
    if (first === undefined) return;
    this.to.write(first.bytes);
    const [second] = this.waiting;
    if (second === undefined) return;
    this.timer = setTimeout(() => this.next(), Math.max(0, second.dueMs - performance.now()));
  }
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  readonly lanes: Lane[];
  /** Forwards nothing more: bytes are missing, or the connection is about to end. */
  isDead: boolean;
}

function isFrom({ client }: Pair, address: string | undefined): boolean {
  return address === undefined || client.remoteAddress === address;
}

/** A TCP proxy on 127.0.0.1 that causes faults on demand. Close it after use. */
export class ChaosProxy {
  private readonly server: Server;
  private readonly random: Random;
  private readonly pairs = new Set<Pair>();
  private mischief: Mischief = PASS;
  private target: number;
  /** Number of faults: pieces delayed, dropped or cut, and connections broken. */
  bites = 0;
  /** Number of connections made through the proxy. */
  accepted = 0;

  private readonly listensOn: { readonly host: string; port: number };

  private constructor(target: number, random: Random, host: string, port: number) {
    this.listensOn = { host, port };
    this.target = target;
    this.random = random;
    this.server = createServer((client) => this.accept(client));
  }

  /** To port `target` of 127.0.0.1; listens on a free port there, or where it is told. */
  static async start(target: number, random: Random, host = '127.0.0.1', port = 0): Promise<ChaosProxy> {
    const proxy = new ChaosProxy(target, random, host, port);
    await proxy.open();
    proxy.listensOn.port = (proxy.server.address() as AddressInfo).port;
    return proxy;
  }

  get port(): number {
    return this.listensOn.port;
  }

  /** Listens again after {@link close}. */
  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(this.listensOn, resolve));
  }

  /** Connections through it. */
  get connections(): number {
    return this.pairs.size;
  }

  do(mischief: Mischief): void {
    this.mischief = mischief;
  }

  /** Stops all faults. Connections that lost bytes remain open and silent. */
  heal(): void {
    this.mischief = PASS;
  }

  /** Closes all connections and refuses new ones. */
  async close(): Promise<void> {
    for (const pair of this.pairs) this.end(pair);
    await new Promise((resolve) => this.server.close(resolve));
  }

  private accept(client: Socket): void {
    const server = connect(this.target, '127.0.0.1');
    const pair: Pair = { client, server, lanes: [], isDead: false };
    this.pairs.add(pair);
    this.accepted++;
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      const lane = new Lane(to);
      pair.lanes.push(lane);
      from.setNoDelay(true);
      from.on('data', (bytes: Buffer) => this.pass(pair, lane, bytes));
      from.on('error', () => this.end(pair));
      from.on('close', () => {
        // A connection that lost bytes remains open on the caller's side, as if the peer had vanished.
        if (!pair.isDead || from === client) this.end(pair);
      });
    }
  }

  private pass(pair: Pair, lane: Lane, bytes: Buffer): void {
    const { mischief, random } = this;
    if (pair.isDead || (mischief.kind === 'drop' && isFrom(pair, mischief.from))) {
      pair.isDead = true;
      this.bites++;
    } else if (mischief.kind === 'delay') {
      this.bites++;
      lane.put(bytes, mischief.ms);
    } else if (mischief.kind === 'split' && bytes.length > 1) {
      this.bites++;
      this.split(lane, bytes);
    } else if ((mischief.kind === 'truncate' || mischief.kind === 'reset') && random.oneIn(mischief.oneIn)) {
      this.bites++;
      this.cut(pair, lane, bytes.subarray(0, random.below(bytes.length)), mischief.kind === 'reset');
    } else lane.put(bytes, 0);
  }

  private split(lane: Lane, bytes: Buffer): void {
    const cuts = Array.from({ length: 3 }, () => this.random.below(bytes.length));
    let at = 0;
    for (const end of [...cuts.sort((one, other) => one - other), bytes.length]) {
      if (end > at) lane.put(bytes.subarray(at, end), at === 0 ? 0 : 1);
      at = end;
    }
  }

  /** The last bytes that pass; the connection breaks soon after them. */
  private cut(pair: Pair, lane: Lane, last: Buffer, isReset: boolean): void {
    if (last.length > 0) lane.put(last, 0);
    pair.isDead = true;
    setTimeout(() => {
      for (const socket of [pair.client, pair.server]) {
        if (isReset) socket.resetAndDestroy();
        else socket.end();
      }
      this.end(pair, isReset);
    }, 1);
  }

  private end(pair: Pair, isOver = true): void {
    this.pairs.delete(pair);
    for (const lane of pair.lanes) lane.clear();
    if (!isOver) {
      pair.client.destroySoon();
      pair.server.destroySoon();
      return;
    }
    pair.client.destroy();
    pair.server.destroy();
  }
}
