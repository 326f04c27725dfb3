import { ClusterFinder } from './cluster/cluster-finder.js';
import type { ClusterView } from './cluster/cluster-view.js';
import { prepareTls } from './connection/dial.js';
import { fixedLogin, type LoginSource } from './connection/login-source.js';
import { Outage } from './connection/outage.js';
import { endpointName } from './connection/redis-address.js';
import type { RedisStoreOptions } from './redis-store-options.js';

/** Finds the server of a bucket once, without using any bucket. */
export class RedisLookup {
  readonly #options: RedisStoreOptions;
  readonly #login: LoginSource;
  readonly #closeFunctions: (() => void)[];
  #view: Promise<ClusterView> | undefined;
  #master: Promise<string> | undefined;

  constructor(options: RedisStoreOptions) {
    this.#options = options;
    this.#login = options.login ?? fixedLogin(options.address);
    this.#closeFunctions = [() => this.#login.close()];
  }

  /**
   * Returns the server of a slot, named as in metrics and health; with Sentinels, the master that they announce. The
   * name contains no password. Does not connect to a single Redis. Rejects after a few seconds at most, with an Error
   * that states the problem and the setting to change.
   */
  async serverOf(slot: number): Promise<string> {
    const { address, finder, names } = this.#options;
    try {
      if (address.cluster !== undefined) {
        this.#view ??= this.#queryCluster();
        const { ranges } = await this.#view;
        const range = ranges.find(({ first, last }) => first <= slot && slot <= last);
        if (range !== undefined) return endpointName(range.master);
        throw new Error(
          `no node serves slot ${slot}: restart the slot's master, or assign the slot to another master ` +
            '(CLUSTER ADDSLOTS)',
        );
      }
      if (finder !== undefined) {
        this.#master ??= this.#queryFinder(finder);
        return await this.#master;
      }
      return address.redactedAddress;
    } catch (error) {
      const named = { prefix: 'REDIS', login: undefined, ...names, cluster: address.cluster !== undefined };
      throw new Error(
        new Outage(address, named).lastSentence((error as Error).message, address.redactedAddress),
      );
    }
  }

  /** Ends all queries. */
  close(): void {
    for (const close of this.#closeFunctions.splice(0)) close();
  }

  #queryCluster(): Promise<ClusterView> {
    const { address, tls, names } = this.#options;
    return new Promise((found, failed) => {
      const cluster = new ClusterFinder(
        {
          seeds: address.cluster ?? [],
          tls: prepareTls(address.tls, tls),
          login: () => this.#login.login(),
          variable: `${names?.prefix ?? 'REDIS'}_URL`,
        },
        { found, failed: (reason) => failed(new Error(reason)), inconsistent: () => {} },
      );
      this.#closeFunctions.push(() => cluster.close());
      cluster.refresh();
    });
  }

  async #queryFinder(make: NonNullable<RedisStoreOptions['finder']>): Promise<string> {
    const finder = make();
    this.#closeFunctions.push(() => finder.close());
    return (await finder.find()).name;
  }
}
