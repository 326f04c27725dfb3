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

/** Events of a {@link LoginSource} for the owner of a connection. */
export interface LoginListeners {
  /** A new login, which open connections should use. Callers of `login` get it, too. */
  renewed(login: RedisLogin): void;
  /**
   * A new login could not be obtained, so the previous one remains; `sentence` is for the log and contains no secret.
   * Undefined: a login was obtained. Only one of several listeners is called, because one log line is enough.
   */
  failed(sentence: string | undefined): void;
}

/** Source of a login that may change. Connections share it, and who opened it closes it after them. */
export interface LoginSource {
  /** Returns the login for a new connection. */
  login(): Promise<RedisLogin>;
  /** Adds listeners. Returns a function that removes them. */
  follow(listeners: LoginListeners): () => void;
  close(): void;
}
