import { connect as connectClear, type NetConnectOpts, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import type { RedisOptions } from '../../../ioredis.js';
import { timerMs } from '../../../limiter/clock.js';
import type { RedisServerOptions, RedisTlsOptions } from '../connection/connection-options.js';
import type { RedisEndpoint } from '../connection/redis-address.js';
import { sharedLookup } from '../connection/shared-lookup.js';
import {
  type ConnectLimit,
  type ConnectorOwner,
  DISCONNECT_MS,
  fixedConnector,
  masterConnector,
} from './connector.js';

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
 * TLS settings with parsed certificates, because parsing a hundred certificates for each connection would take
 * milliseconds.
 */
interface PreparedTls {
  readonly options: RedisTlsOptions;
  readonly context: SecureContext;
}

/** What the options need of the owner of the connection. */
export interface OptionsOwner extends ConnectorOwner {
  /** Handles the end of a connection or of an attempt to connect, before its commands fail. */
  closed(): void;
}

/**
 * Returns the options of an ioredis client for one server. ioredis sends nothing by itself: its owner logs in, selects
 * the database and probes. Throws an Error if the TLS settings are invalid.
 */
export function redisOptions(
  options: RedisServerOptions,
  owner: OptionsOwner,
): RedisOptions & { replyMapping: 'legacy' } {
  const { address, timeoutMicros } = options;
  const tls = address.tls ? prepareTls(options.tls) : undefined;
  const connectMs = tls === undefined ? CONNECT_MS : Math.max(CONNECT_MS, timerMs(timeoutMicros));
  const limit = { connectMs, usesTls: tls !== undefined };
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
    // The owner connects again.
    retryStrategy: () => {
      owner.closed();
      return null;
    },
    ...(address.sentinel === undefined
      ? fixedServer(options, owner, limit, tls)
      : announcedMaster(options, owner, limit, tls)),
    replyMapping: 'legacy',
  };
}

/** Parses the certificates. Throws an Error if they are invalid. */
function prepareTls(options: RedisTlsOptions = {}): PreparedTls {
  return { options, context: createSecureContext({ ...options }) };
}

function openStream(endpoint: RedisEndpoint, tls: PreparedTls | undefined): Socket {
  const target: NetConnectOpts = 'path' in endpoint ? endpoint : { ...endpoint, lookup: sharedLookup };
  if (tls === undefined) return connectClear(target);
  return connectTls({ ...tls.options, ...target, secureContext: tls.context });
}

function fixedServer(
  { address: { path, host = '', port = 0 } }: RedisServerOptions,
  owner: ConnectorOwner,
  limit: ConnectLimit,
  tls: PreparedTls | undefined,
): RedisOptions {
  const endpoint = path === undefined ? { host, port } : { path };
  return {
    Connector: fixedConnector(owner, limit, () => openStream(endpoint, tls)),
    // The connector applies the other TLS settings.
    ...(tls === undefined ? {} : { tls: {} }),
  };
}

function announcedMaster(
  { address: { sentinel }, sentinelLogin }: RedisServerOptions,
  owner: ConnectorOwner,
  limit: ConnectLimit,
  tls: PreparedTls | undefined,
): RedisOptions {
  const { username, password } = sentinelLogin ?? {};
  const secure = tls && { ...tls.options, secureContext: tls.context, lookup: sharedLookup };
  return {
    Connector: masterConnector(owner, limit),
    name: sentinel?.masterName,
    role: 'master',
    sentinels: sentinel?.sentinels.map((one) => ({ ...one })),
    // Sentinels may announce addresses of each other that weir cannot reach.
    updateSentinels: false,
    // Without it, weir would use the old master for seconds after a planned failover.
    failoverDetector: true,
    sentinelUsername: username,
    sentinelPassword: password,
    sentinelCommandTimeout: SENTINEL_ANSWER_MS,
    sentinelRetryStrategy: (attempts) => Math.min(25 * attempts, MAX_SENTINEL_PAUSE_MS),
    sentinelReconnectStrategy: () => SENTINEL_RECONNECT_MS,
    ...(secure && { enableTLSForSentinelMode: true, tls: secure, sentinelTLS: secure }),
  } as RedisOptions;
}
