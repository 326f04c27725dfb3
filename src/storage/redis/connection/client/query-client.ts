import { ignore } from '../../../../runtime/ignore.js';
import { needsNoPassword, openStream, type PreparedTls } from '../dial.js';
import type { HostPort } from '../redis-address.js';
import { withoutArguments } from '../redis-error.js';
import type { RedisLogin } from '../redis-login.js';
import { Redis, type RedisOptions } from './ioredis.js';
import { ownConnector } from './own-connector.js';

/** Longest that who is asked may take to accept a connection, and to answer. Milliseconds. */
const TIMEOUT_MS = 1000;
/** Longest that a connection, a login and a question may take together. Milliseconds. */
export const TOTAL_TIMEOUT_MS = 2 * TIMEOUT_MS;

/** Options of an ioredis that asks servers about other servers, by connections like those to Redis itself. */
export function queryClientOptions(
  endpoint: HostPort,
  tls: PreparedTls | undefined,
): RedisOptions & { replyMapping: 'legacy' } {
  const { host, port } = endpoint;
  return {
    Connector: ownConnector(() => openStream({ endpoint: { host, port }, tls })),
    // The connector has the rest.
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

/** Who is asked, and how. */
export interface QueriedServer {
  readonly endpoint: HostPort;
  readonly tls: PreparedTls | undefined;
  readonly login: RedisLogin;
}

/** Asks servers about other servers, each question on a connection of its own. */
export class QueryClients {
  readonly #asking = new Set<Redis>();
  #closed = false;

  /**
   * Resolves with what `question` does, once logged in. Rejects, after a second or two at most, with an Error for the
   * log, whose sentence `explain` makes of what the server, or the connection, said; it may ask more.
   */
  async ask<T>(
    { endpoint, tls, login }: QueriedServer,
    question: (client: Redis) => Promise<T>,
    explain: (client: Redis, said: string) => string | Promise<string>,
  ): Promise<T> {
    if (this.#closed) throw new Error('nobody is asked any more');
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
      return await question(client);
    } catch (error) {
      const said = connectionError || (error as Error).message;
      throw new Error(await explain(client, withoutArguments(said)));
    } finally {
      clearTimeout(late);
      this.#asking.delete(client);
      client.disconnect();
    }
  }

  /** Ends all connections, for good. */
  close(): void {
    this.#closed = true;
    for (const client of this.#asking) client.disconnect();
  }
}

/**
 * Logs in and names the connection. Not by options of the client, which writes to the console where no password is
 * wanted. Rejects with the error of the server.
 */
export async function logIn(client: Redis, { username, password }: RedisLogin): Promise<void> {
  if (password !== undefined) {
    const args = username === undefined ? [password] : [username, password];
    await client.call('AUTH', ...args).catch((error: Error) => {
      if (!needsNoPassword(error)) throw error;
    });
  }
  // After the login: who is not logged in may not set it.
  client.call('CLIENT', 'SETNAME', 'weir').catch(ignore);
}
