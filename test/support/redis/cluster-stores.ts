import { StorageError, type TakeItem, type TakeOutcome } from '../../../src/limiter/bucket-store.js';
import type { StoreFault } from '../../../src/limiter/store-fault.js';
import type { ClusterStoreOptions } from '../../../src/storage/redis/cluster/cluster-store.js';
import { parseClusterUrl } from '../../../src/storage/redis/connection/named-servers.js';
import { REDIS } from '../limiter/store-options.js';
import { waitFor } from '../process/wait-for.js';
import { ClusterAlone } from './redis-alone.js';

/** A cluster as the only Redis of a store, and what it says. */
export interface WatchedStore {
  readonly store: ClusterAlone;
  readonly log: string[];
  readonly faults: StoreFault[];
  /** Why a request failed, or `decided`. */
  take(...items: readonly TakeItem[]): Promise<string>;
  /** The outcome of one item. Throws where it was not decided. */
  outcome(item: TakeItem): Promise<TakeOutcome>;
}

/** Stores on clusters, which {@link close} closes. */
export class ClusterStores {
  private readonly opened: ClusterAlone[] = [];

  /** A store on the nodes that `url` names. */
  openOne(url: string, options: Partial<ClusterStoreOptions> = {}): WatchedStore {
    const log: string[] = [];
    const faults: StoreFault[] = [];
    const store = new ClusterAlone({
      ...REDIS,
      address: parseClusterUrl(url),
      log: (level, message) => log.push(`${level}: ${message}`),
      observeFault: (fault) => faults.push(fault),
      ...options,
    });
    this.opened.push(store);
    return {
      ...{ store, log, faults },
      async take(...items) {
        const result = await store.take(items, Infinity);
        return result instanceof StorageError ? result.reason : 'decided';
      },
      async outcome(item) {
        const result = await store.take([item], Infinity);
        if (result instanceof StorageError) throw result;
        return result[0] as TakeOutcome;
      },
    };
  }

  /** The same, once all nodes are up. */
  async open(url: string, options?: Partial<ClusterStoreOptions>): Promise<WatchedStore> {
    const opened = this.openOne(url, options);
    await waitFor('all nodes to be up', () => opened.store.whole);
    return opened;
  }

  async close(): Promise<void> {
    await Promise.all(this.opened.splice(0).map((store) => store.close()));
  }
}
