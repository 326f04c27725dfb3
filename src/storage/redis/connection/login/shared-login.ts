import type { LoginListeners, LoginSource } from '../login-source.js';
import type { RedisLogin } from '../redis-login.js';

/** One login for the nodes of a cluster: a source for each, over one that is asked for all. */
export class SharedLogin {
  readonly #source: LoginSource;
  readonly #followers = new Set<LoginListeners>();
  #latest: RedisLogin | undefined;

  constructor(source: LoginSource) {
    this.#source = source;
    source.follow({
      renewed: (login) => {
        this.#latest = login;
        for (const { renewed } of this.#followers) renewed(login);
      },
      // It is worth one line of the log.
      failed: (sentence) => {
        for (const { failed } of [...this.#followers].slice(0, 1)) failed(sentence);
      },
    });
  }

  /**
   * The login for who asks nodes about the cluster, now and then: not a new one each time, as that may be the work of a
   * program. `refused`: a node did not accept the one before.
   */
  async login(refused: boolean): Promise<RedisLogin> {
    if (refused || this.#latest === undefined) this.#latest = await this.#source.login(refused);
    return this.#latest;
  }

  /** Of one node; closing it leaves the others theirs. */
  ofNode(): LoginSource {
    let own: LoginListeners | undefined;
    return {
      login: (refused) => this.#source.login(refused),
      follow: (listeners) => {
        own = listeners;
        this.#followers.add(listeners);
      },
      close: () => {
        if (own !== undefined) this.#followers.delete(own);
      },
    };
  }

  close(): void {
    this.#source.close();
  }
}
