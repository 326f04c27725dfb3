import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { closeLater } from '../process/close-later.js';

/** A proxy in front of a Redis that a test can pause and disconnect. */
export interface PausableProxy {
  readonly port: number;
  /** Number of connections accepted so far. */
  readonly accepted: number;
  /** Bytes received from clients since the last {@link pause}. */
  readonly received: number;
  /** Pauses one direction: `requests` from clients, or `replies` from Redis. */
  pause(what: 'requests' | 'replies'): void;
  /** Resumes both directions; paused bytes are sent first. */
  resume(): void;
  /** Refuses new connections, from the `n`-th on. */
  refuseFrom(n: number): void;
  /** Closes all connections and discards paused bytes. */
  disconnect(): void;
  close(): Promise<void>;
}

/**
 * Listens on 127.0.0.1 in front of the Redis at `redisPort`, which may be a function that returns the current port.
 * `reply` passes the bytes that Redis sends on to the client.
 */
export async function startPausableProxy(
  redisPort: number | (() => number),
  reply: (to: Socket, chunk: Buffer) => void = (to, chunk) => to.write(chunk),
): Promise<PausableProxy> {
  const sockets = new Set<Socket>();
  let held: 'requests' | 'replies' | undefined;
  let waiting: (() => unknown)[] = [];
  let accepted = 0;
  let received = 0;
  let refusedFrom = Number.POSITIVE_INFINITY;
  const server = createServer((client) => {
    accepted++;
    if (accepted >= refusedFrom) {
      client.destroy();
      return;
    }
    const upstream = connect(typeof redisPort === 'number' ? redisPort : redisPort(), '127.0.0.1');
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.setNoDelay(true);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.on('data', (chunk: Buffer) => {
        if (one === client) received += chunk.length;
        const forward = (): unknown => (one === client ? other.write(chunk) : reply(client, chunk));
        if (held === (one === client ? 'requests' : 'replies')) waiting.push(forward);
        else forward();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const disconnect = (): void => {
    waiting = [];
    for (const socket of sockets) socket.destroy();
  };
  const proxy: PausableProxy = {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted;
    },
    get received() {
      return received;
    },
    pause(what) {
      held = what;
      received = 0;
    },
    resume() {
      held = undefined;
      for (const write of waiting.splice(0)) write();
    },
    refuseFrom(n) {
      refusedFrom = n;
    },
    disconnect,
    close: () => {
      disconnect();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return closeLater(proxy, () => proxy.close());
}
