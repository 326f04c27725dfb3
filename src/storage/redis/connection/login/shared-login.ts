import type { LoginListeners, LoginSource } from '../login-source.js';
import type { RedisLogin } from '../redis-login.js';

/**
 * Shares one login among the nodes of a cluster. Each node has its own source, and all sources return the same login.
 */
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
      // One log line is enough for all nodes.
      failed: (sentence) => {
        for (const { failed } of [...this.#followers].slice(0, 1)) failed(sentence);
      },
    });
  }

  /**
   * Returns the login for occasional queries about the cluster. Does not request a new login each time, because that
   * could run a program. `refused`: a node did not accept the previous login.
   */
  async login(refused: boolean): Promise<RedisLogin> {
    if (refused || this.#latest === undefined) this.#latest = await this.#source.login(refused);
    return this.#latest;
  }

  /** Returns the source for one node; closing it does not affect the others. */
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
