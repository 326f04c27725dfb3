import type { LoginListeners, LoginSource } from './login-source.js';

/**
 * Shares one login among the nodes of a cluster. Each node has its own source, and all sources return the same login.
 */
export class SharedLogin {
  readonly #source: LoginSource;
  readonly #followers = new Set<LoginListeners>();

  constructor(source: LoginSource) {
    this.#source = source;
    source.follow({
      renewed: (login) => {
        for (const { renewed } of this.#followers) renewed(login);
      },
      // One log line is enough for all nodes.
      failed: (sentence) => {
        for (const { failed } of [...this.#followers].slice(0, 1)) failed(sentence);
      },
    });
  }

  /** Returns the source for one node; closing it does not affect the others. */
  ofNode(): LoginSource {
    let own: LoginListeners | undefined;
    return {
      login: () => this.#source.login(),
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
