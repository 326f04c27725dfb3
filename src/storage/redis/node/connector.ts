import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import {
  AbstractConnector,
  type Redis,
  type RedisOptions,
  SentinelConnector,
} from '../../../runtime/ioredis.js';
import { ignore } from '../../../runtime/signal.js';
import { networkMessage } from '../../../runtime/texts.js';
import { StallTolerantTimer } from '../../../runtime/timers.js';

type Connector = NonNullable<RedisOptions['Connector']>;

/** Maximum time for a Sentinel to accept a connection, in milliseconds. */
const SENTINEL_CONNECT_MS = 1000;
/** Time for a server to answer calls and close a connection that weir ends, in milliseconds. */
export const DISCONNECT_MS = 100;
/**
 * Maximum bytes that a server may send without completing a reply, because ioredis keeps them all: another program at
 * the address of Redis may send anything. The largest reply to a call has 32 KiB.
 */
export const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** What a connector needs of the owner of the connection. */
export interface ConnectorOwner {
  /** Bytes that were received since the latest complete reply; the owner resets it. */
  unreadBytes: number;
  /** Whether the server that a Sentinel announced is a replica, so that another Sentinel must be asked. */
  isReplica?: boolean;
  /** The current connection ends, as ioredis was asked to, or as a Sentinel announced another master. */
  leaving(): void;
  /** A connection to a Sentinel failed. ioredis itself reports only that it was closed. */
  sentinelFailed(message: string): void;
}

/**
 * Returns a connector for ioredis that opens connections with `open`. A connection and its TLS handshake may take
 * `connectMs`.
 */
export function fixedConnector(owner: ConnectorOwner, connectMs: number, open: () => Socket): Connector {
  return class extends AbstractConnector {
    constructor() {
      super(DISCONNECT_MS);
    }

    async connect(): Promise<Socket> {
      this.connecting = true;
      const stream = guarded(open(), owner, connectMs);
      this.stream = stream;
      return stream;
    }
  };
}

/** Returns a connector for ioredis that connects to the master that Sentinels announce. */
export function masterConnector(owner: ConnectorOwner, connectMs: number): Connector {
  return class extends SentinelConnector {
    constructor(options: unknown) {
      super(options as ConstructorParameters<typeof SentinelConnector>[0]);
      // ioredis adds no listeners to these clients, and prints their errors to stderr.
      const internals = this as unknown as { connectToSentinel(server: object, options?: object): Redis };
      const connectToSentinel = internals.connectToSentinel.bind(this);
      internals.connectToSentinel = (server, clientOptions) => {
        const client = connectToSentinel(server, {
          connectTimeout: SENTINEL_CONNECT_MS,
          disconnectTimeout: DISCONNECT_MS,
          disableClientInfo: true,
          ...clientOptions,
        });
        client.on('error', (error) => owner.sentinelFailed(networkMessage(error)));
        return client;
      };
    }

    override async connect(...args: Parameters<SentinelConnector['connect']>): Promise<Socket> {
      if (owner.isReplica) this.check({ role: 'slave' });
      owner.isReplica = false;
      return guarded((await super.connect(...args)) as Socket, owner, connectMs);
    }

    override disconnect(): void {
      owner.leaving();
      super.disconnect();
    }
  };
}

/**
 * Adds what ioredis does not do: repeated errors, a connection that takes too long, endless replies, and writes in
 * Latin-1.
 */
function guarded(stream: Socket, owner: ConnectorOwner, connectMs: number): Socket {
  // Commands are ASCII text or buffers, and Node.js writes Latin-1 in less than half the time of UTF-8.
  stream.setDefaultEncoding('latin1');
  // ioredis listens for one error. A TLS socket may emit a second one, which would end the process.
  stream.on('error', ignore);
  const timer = new StallTolerantTimer(connectMs, () => stream.destroy(new Error('connect ETIMEDOUT')));
  stream.once(stream instanceof TLSSocket ? 'secureConnect' : 'connect', () => timer.stop());
  stream.once('close', () => timer.stop());
  // Runs after ioredis has read the chunk.
  stream.on('data', (chunk: Buffer) => {
    owner.unreadBytes += chunk.length;
    if (owner.unreadBytes > MAX_UNREAD_BYTES)
      stream.destroy(new Error('the server sent more data than requested'));
  });
  return stream;
}
