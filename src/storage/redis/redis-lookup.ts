import { type ClusterView, connectAndQuery, newestView } from './cluster/cluster-view.js';
import { endpointName } from './connection/redis-address.js';
import { nodeFaultText } from './node/faults.js';
import type { RedisStoreOptions } from './redis-store-options.js';
import { shownServer, withRedis } from './with-redis.js';

/** Finds the server of a bucket once, without using any bucket. */
export class RedisLookup {
  readonly #options: RedisStoreOptions;
  readonly #closing = new AbortController();
  #view: Promise<ClusterView> | undefined;
  #master: Promise<string> | undefined;

  constructor(options: RedisStoreOptions) {
    this.#options = options;
  }

  /**
   * Returns the server of a slot, named as in metrics and health; with Sentinels, the master that they announce. The
   * name contains no password. Does not connect to a single Redis. Rejects after a few seconds at most, with an Error
   * that states the problem and the setting to change.
   */
  async serverOf(slot: number): Promise<string> {
    const { address, prefix } = this.#options;
    const { cluster, sentinel, redactedAddress } = address;
    try {
      if (cluster !== undefined) {
        this.#view ??= newestView(cluster, undefined, (node) =>
          connectAndQuery(this.#options, node, this.#closing.signal),
        );
        const { ranges } = await this.#view;
        const range = ranges.find(({ first, last }) => first <= slot && slot <= last);
        if (range !== undefined) return endpointName(range.master);
        throw new Error(`no node of the Redis Cluster serves slot ${slot}`);
      }
      if (sentinel === undefined) return redactedAddress;
      this.#master ??= withRedis(this.#options, this.#closing.signal, async ({ stream }) =>
        shownServer(address, stream),
      );
      return await this.#master;
    } catch (error) {
      const why = nodeFaultText((error as Error).message, prefix ?? 'REDIS');
      throw new Error(`Redis ${redactedAddress} cannot be used: ${why}`);
    }
  }

  /** Ends all queries. */
  close(): void {
    this.#closing.abort();
    this.#options.login?.close();
  }
}
