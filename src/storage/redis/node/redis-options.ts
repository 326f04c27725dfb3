import { connect as connectClear, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext } from 'node:tls';
import { timerMs } from '../../../limiter/clock.js';
import type { RedisOptions } from '../../../runtime/ioredis.js';
import type { RedisServerOptions } from '../connection/connection-options.js';
import { type ConnectorOwner, DISCONNECT_MS, fixedConnector, masterConnector } from './connector.js';

/**
 * Maximum time for a connection, in milliseconds. With TLS, whose handshake takes Redis time, it is REDIS_TIMEOUT if
 * that is longer.
 */
const CONNECT_MS = 1000;
const KEEP_ALIVE_MS = 30_000;
/** Maximum time for the answer of a Sentinel, in milliseconds. */
const SENTINEL_ANSWER_MS = 500;
/** Pause before the next subscription to a Sentinel that cannot be reached, in milliseconds. */
const SENTINEL_RECONNECT_MS = 2000;
const MAX_SENTINEL_PAUSE_MS = 200;

/**
 * Returns the options of an ioredis client for one server. ioredis sends nothing by itself: its owner logs in, selects
 * the database, probes, and connects again. Throws an Error if the TLS settings are invalid.
 */
export function redisOptions(
  options: RedisServerOptions,
  owner: ConnectorOwner,
): RedisOptions & { replyMapping: 'legacy' } {
  const { path, host = '', port = 0, sentinel } = options.address;
  const endpoint = path === undefined ? { host, port } : { path };
  // Parsing a hundred certificates for each connection would take milliseconds.
  const tls = options.address.tls && {
    ...options.tls,
    secureContext: createSecureContext({ ...options.tls }),
  };
  const connectMs = tls ? Math.max(CONNECT_MS, timerMs(options.timeoutMicros)) : CONNECT_MS;
  const open = (): Socket => (tls ? connectTls({ ...tls, ...endpoint }) : connectClear(endpoint));
  return {
    lazyConnect: true,
    // RESP3 has nothing that weir needs, and old servers refuse it.
    protocol: 2,
    disableClientInfo: true,
    enableReadyCheck: false,
    // A command that may have run is never sent again: it fails when the connection closes.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // Its timer would fire in a stalled process before the connection is noticed; the connector has another one.
    connectTimeout: 0,
    disconnectTimeout: DISCONNECT_MS,
    keepAlive: KEEP_ALIVE_MS,
    retryStrategy: () => null,
    ...(tls && { tls }),
    ...(sentinel === undefined
      ? { Connector: fixedConnector(owner, connectMs, open) }
      : {
          Connector: masterConnector(owner, connectMs),
          name: sentinel.masterName,
          role: 'master',
          sentinels: sentinel.sentinels.map((one) => ({ ...one })),
          // Sentinels may announce addresses of each other that weir cannot reach.
          updateSentinels: false,
          // Without it, weir would use the old master for seconds after a planned failover.
          failoverDetector: true,
          sentinelUsername: options.sentinelLogin?.username,
          sentinelPassword: options.sentinelLogin?.password,
          sentinelCommandTimeout: SENTINEL_ANSWER_MS,
          sentinelRetryStrategy: (attempts: number) => Math.min(25 * attempts, MAX_SENTINEL_PAUSE_MS),
          sentinelReconnectStrategy: () => SENTINEL_RECONNECT_MS,
          ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
        }),
    replyMapping: 'legacy',
  } as RedisOptions & { replyMapping: 'legacy' };
}
