/** The user and password for Redis. */
export interface RedisLogin {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** Parses REDIS_AUTH: a password, or `user:password`. Empty means no login. */
export function parseLogin(text: string): RedisLogin {
  if (text === '') return {};
  const colon = text.indexOf(':');
  if (colon === -1) return { password: text };
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** Events of a {@link LoginSource} for the owner of connections. */
export interface LoginListeners {
  /** A new login, which open connections should use. Callers of `login` get it, too. */
  renewed(login: RedisLogin): void;
  /**
   * A new login could not be obtained, so the previous one remains; `sentence` is for the log and contains no secret.
   * Undefined: a login was obtained.
   */
  failed(sentence: string | undefined): void;
}

/** Source of a Redis login. */
export interface LoginSource {
  /** Returns the login for a new connection. */
  login(): Promise<RedisLogin>;
  /** Sets the listeners; called once, before all other methods. */
  follow(listeners: LoginListeners): void;
  close(): void;
}

/** Returns a source whose login never changes. */
export function fixedLogin(login: RedisLogin): LoginSource {
  return { login: () => Promise.resolve(login), follow: () => {}, close: () => {} };
}

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
