import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to a Redis that a test can hold up and cut. */
export interface HeldProxy {
  readonly port: number;
  /** Connections made to it so far. */
  readonly accepted: number;
  /** Bytes that came from clients since the last {@link hold}. */
  readonly received: number;
  /** From now on nothing gets through: `requests` what clients send, `replies` what Redis sends. */
  hold(what: 'requests' | 'replies'): void;
  /** Lets everything through, what was held first. */
  release(): void;
  /** Connections that come are refused from the `n`-th on. */
  refuseFrom(n: number): void;
  /** Ends all connections; what was held is lost. */
  cut(): void;
  close(): Promise<void>;
}

/** Listens on 127.0.0.1 before the Redis at `redisPort`, or at what `port` says then. */
export async function startHeldProxy(redisPort: number | (() => number)): Promise<HeldProxy> {
  const sockets = new Set<Socket>();
  let held: 'requests' | 'replies' | undefined;
  let waiting: (() => void)[] = [];
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
        if (held === (one === client ? 'requests' : 'replies')) waiting.push(() => other.write(chunk));
        else other.write(chunk);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    waiting = [];
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted;
    },
    get received() {
      return received;
    },
    hold(what) {
      held = what;
      received = 0;
    },
    release() {
      held = undefined;
      for (const write of waiting.splice(0)) write();
    },
    refuseFrom(n) {
      refusedFrom = n;
    },
    cut,
    close: () => {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
