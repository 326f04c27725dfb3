import { StorageError, type Take, type TakeOutcome } from '../../../src/limiter/bucket-store.js';
import type { StoreFault } from '../../../src/limiter/failure-policy.js';
import type { ClusterStoreOptions } from '../../../src/storage/redis/cluster/cluster-store.js';
import { parseClusterUrl } from '../../../src/storage/redis/connection/redis-address.js';
import { REDIS } from '../limiter/store-options.js';
import { waitFor } from '../process/wait-for.js';
import { SingleClusterStore } from './single-stores.js';

/** A store on a cluster, with its log lines. */
export interface LoggedStore {
  readonly store: SingleClusterStore;
  readonly log: string[];
  readonly faults: StoreFault[];
  /** Resolves with the reason for a failed request, or `decided`. */
  take(...takes: readonly Take[]): Promise<string>;
  /** Resolves with the outcome of one item. Throws if it was not decided. */
  outcome(take: Take): Promise<TakeOutcome>;
}

/** Opens a store on the nodes of a cluster in `url`. */
export function openCluster(url: string, options: Partial<ClusterStoreOptions> = {}): LoggedStore {
  const log: string[] = [];
  const faults: StoreFault[] = [];
  const store = new SingleClusterStore({
    ...REDIS,
    address: parseClusterUrl(url),
    log: (level, message) => log.push(`${level}: ${message}`),
    observeFault: (fault) => faults.push(fault),
    ...options,
  });
  return {
    ...{ store, log, faults },
    async take(...takes) {
      const result = await store.take(takes, Infinity);
      return result instanceof StorageError ? result.reason : 'decided';
    },
    async outcome(take) {
      const result = await store.take([take], Infinity);
      if (result instanceof StorageError) throw result;
      return result[0] as TakeOutcome;
    },
  };
}

/** Same as {@link openCluster}, but resolves once all nodes are available. */
export async function openWholeCluster(
  url: string,
  options?: Partial<ClusterStoreOptions>,
): Promise<LoggedStore> {
  const opened = openCluster(url, options);
  await waitFor('all nodes to be up', () => opened.store.isComplete);
  return opened;
}
