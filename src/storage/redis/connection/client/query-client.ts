import { Redis, type RedisOptions } from '../../../../ioredis.js';
import { authenticate, withoutArguments } from '../../../../redis-auth.js';
import { ignore } from '../../../../runtime/ignore.js';
import { openStream, type PreparedTls } from '../dial.js';
import type { HostPort } from '../redis-address.js';
import type { RedisLogin } from '../redis-login.js';
import { ownConnector } from './own-connector.js';

/** Maximum time for a server to accept a connection, and to reply, in milliseconds. */
const TIMEOUT_MS = 1000;
/** Maximum time for a connection, a login and a query together, in milliseconds. */
const TOTAL_TIMEOUT_MS = 2 * TIMEOUT_MS;

/**
 * Returns options of an ioredis client that queries servers about other servers. Its connections are opened like those
 * to Redis itself.
 */
export function queryClientOptions(
  endpoint: HostPort,
  tls: PreparedTls | undefined,
): RedisOptions & { replyMapping: 'legacy' } {
  const { host, port } = endpoint;
  return {
    Connector: ownConnector(() => openStream({ endpoint: { host, port }, tls })),
    // The connector applies the other TLS settings.
    ...(tls === undefined ? {} : { tls: {} }),
    lazyConnect: true,
    protocol: 2,
    replyMapping: 'legacy',
    disableClientInfo: true,
    enableReadyCheck: false,
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    disconnectTimeout: 100,
  };
}

/** A server to query, and its TLS and login. */
export interface QueriedServer {
  readonly endpoint: HostPort;
  readonly tls: PreparedTls | undefined;
  readonly login: RedisLogin;
}

/** Queries servers about other servers, with a new connection for each query. */
export class QueryClients {
  readonly #asking = new Set<Redis>();
  #closed = false;

  /**
   * Connects, logs in, and resolves with the result of `query`. Rejects after 1 or 2 s at most, with an Error for
   * the log. `explain` creates its message from the error of the server or the connection, and may send further
   * queries.
   */
  async ask<T>(
    { endpoint, tls, login }: QueriedServer,
    query: (client: Redis) => Promise<T>,
    explain: (client: Redis, said: string) => string | Promise<string>,
  ): Promise<T> {
    if (this.#closed) throw new Error('the Redis lookup was closed');
    const client = new Redis({ ...queryClientOptions(endpoint, tls), retryStrategy: () => null });
    let connectionError = '';
    client.on('error', ({ message }: Error) => {
      connectionError = message;
    });
    this.#asking.add(client);
    const late = setTimeout(() => {
      connectionError = `no answer within ${TOTAL_TIMEOUT_MS} ms`;
      client.disconnect();
    }, TOTAL_TIMEOUT_MS);
    try {
      await client.connect();
      await logIn(client, login);
      return await query(client);
    } catch (error) {
      const message = connectionError || (error as Error).message;
      throw new Error(await explain(client, withoutArguments(message)));
    } finally {
      clearTimeout(late);
      this.#asking.delete(client);
      client.disconnect();
    }
  }

  /** Closes all connections permanently. */
  close(): void {
    this.#closed = true;
    for (const client of this.#asking) client.disconnect();
  }
}

/**
 * Logs in and names the connection. The client's own options would write to the console if no password is required.
 * Rejects with the error of the server.
 */
export async function logIn(client: Redis, { username, password }: RedisLogin): Promise<void> {
  if (password !== undefined) {
    await authenticate((args) => client.call('AUTH', ...args), username, password);
  }
  // Sent after the login, because it is not permitted before.
  client.call('CLIENT', 'SETNAME', 'weir').catch(ignore);
}
