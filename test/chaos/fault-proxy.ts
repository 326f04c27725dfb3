import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { Random } from '../fuzz/random.js';

/** Faults of a {@link FaultProxy}. */
export type ProxyFault =
  | { readonly kind: 'none' }
  /** Delays all data by this many milliseconds. */
  | { readonly kind: 'delay'; readonly ms: number }
  /**
   * Drops all data from now on, on existing and new connections, which remain open. `from` limits the fault to
   * connections from this address.
   */
  | { readonly kind: 'drop'; readonly from?: string }
  /** Forwards only the beginning of a chunk, and then ends the connection (truncate) or resets it. */
  | { readonly kind: 'truncate' | 'reset'; readonly oneIn: number }
  /** Splits every chunk at random positions. */
  | { readonly kind: 'split' };

const NO_FAULT: ProxyFault = { kind: 'none' };

/** Forwards the chunks of one direction in order, each at its due time. */
class DelayedWriter {
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

  /** Forwards one chunk at a time, so that each chunk is a separate packet. */
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

interface ProxiedConnection {
  readonly client: Socket;
  readonly server: Socket;
  readonly writers: DelayedWriter[];
  /** Whether the proxy forwards no more data, because bytes are missing or the connection is about to end. */
  isSilent: boolean;
}

function isFrom({ client }: ProxiedConnection, address: string | undefined): boolean {
  return address === undefined || client.remoteAddress === address;
}

/** A TCP proxy on 127.0.0.1 that causes faults on demand. Close it after use. */
export class FaultProxy {
  private readonly server: Server;
  private readonly random: Random;
  private readonly connections = new Set<ProxiedConnection>();
  private fault: ProxyFault = NO_FAULT;
  private target: number;
  /** Number of chunks that were delayed, dropped, split or truncated. */
  effects = 0;
  /** Number of connections made through the proxy. */
  accepted = 0;

  private readonly address: { readonly host: string; port: number };

  private constructor(target: number, random: Random, host: string, port: number) {
    this.address = { host, port };
    this.target = target;
    this.random = random;
    this.server = createServer((client) => this.accept(client));
  }

  /** Creates a proxy for port `target` of 127.0.0.1. By default, it listens on a free port of 127.0.0.1. */
  static async create(target: number, random: Random, host = '127.0.0.1', port = 0): Promise<FaultProxy> {
    const proxy = new FaultProxy(target, random, host, port);
    await proxy.open();
    proxy.address.port = (proxy.server.address() as AddressInfo).port;
    return proxy;
  }

  get port(): number {
    return this.address.port;
  }

  /** Listens again after {@link close}. */
  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(this.address, resolve));
  }

  /** Starts a fault, which lasts until {@link heal}. */
  start(fault: ProxyFault): void {
    this.fault = fault;
  }

  /** Ends the fault. Connections that lost bytes remain open, but stay silent. */
  heal(): void {
    this.fault = NO_FAULT;
  }

  /** Closes all connections and refuses new ones. */
  async close(): Promise<void> {
    for (const connection of this.connections) this.end(connection);
    await new Promise((resolve) => this.server.close(resolve));
  }

  private accept(client: Socket): void {
    const server = connect(this.target, '127.0.0.1');
    const connection: ProxiedConnection = { client, server, writers: [], isSilent: false };
    this.connections.add(connection);
    this.accepted++;
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      const writer = new DelayedWriter(to);
      connection.writers.push(writer);
      from.setNoDelay(true);
      from.on('data', (bytes: Buffer) => this.pass(connection, writer, bytes));
      from.on('error', () => this.end(connection));
      from.on('close', () => {
        // A connection that lost bytes remains open on the side of the client, as if the server had disappeared.
        if (!connection.isSilent || from === client) this.end(connection);
      });
    }
  }

  private pass(connection: ProxiedConnection, writer: DelayedWriter, bytes: Buffer): void {
    const { fault, random } = this;
    if (connection.isSilent || (fault.kind === 'drop' && isFrom(connection, fault.from))) {
      connection.isSilent = true;
      this.effects++;
    } else if (fault.kind === 'delay') {
      this.effects++;
      writer.put(bytes, fault.ms);
    } else if (fault.kind === 'split' && bytes.length > 1) {
      this.effects++;
      this.split(writer, bytes);
    } else if ((fault.kind === 'truncate' || fault.kind === 'reset') && random.oneIn(fault.oneIn)) {
      this.effects++;
      this.cut(connection, writer, bytes.subarray(0, random.below(bytes.length)), fault.kind === 'reset');
    } else writer.put(bytes, 0);
  }

  private split(writer: DelayedWriter, bytes: Buffer): void {
    const cuts = Array.from({ length: 3 }, () => this.random.below(bytes.length));
    let at = 0;
    for (const end of [...cuts.sort((one, other) => one - other), bytes.length]) {
      if (end > at) writer.put(bytes.subarray(at, end), at === 0 ? 0 : 1);
      at = end;
    }
  }

  /** Forwards the last bytes of a connection, and then closes or resets the connection. */
  private cut(connection: ProxiedConnection, writer: DelayedWriter, last: Buffer, isReset: boolean): void {
    if (last.length > 0) writer.put(last, 0);
    connection.isSilent = true;
    setTimeout(() => {
      for (const socket of [connection.client, connection.server]) {
        if (isReset) socket.resetAndDestroy();
        else socket.end();
      }
      this.end(connection, isReset);
    }, 1);
  }

  private end(connection: ProxiedConnection, isOver = true): void {
    this.connections.delete(connection);
    for (const writer of connection.writers) writer.clear();
    if (!isOver) {
      connection.client.destroySoon();
      connection.server.destroySoon();
      return;
    }
    connection.client.destroy();
    connection.server.destroy();
  }
}
