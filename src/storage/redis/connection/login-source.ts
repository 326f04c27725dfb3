import type { RedisLogin } from './redis-login.js';

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
