import type { RedisLogin } from './redis-login.js';

/** What a {@link LoginSource} tells the owner of the connections. */
export interface LoginListeners {
  /** A new login, which live connections are to be given; told also to those who ask for it. */
  renewed(login: RedisLogin): void;
  /**
   * No new login could be had, so the one before stays: why, a sentence for the log without a secret. Undefined: one
   * could be had.
   */
  failed(sentence: string | undefined): void;
}

/** Where the login of a Redis comes from. */
export interface LoginSource {
  /**
   * The login for a connection that is about to be made. `refused` says that Redis did not accept the one before.
   * Rejects with an Error for the log where there is none to be had, and there was none before.
   */
  login(refused: boolean): Promise<RedisLogin>;
  /** Begins to tell `listeners`; called once, before anything else. */
  follow(listeners: LoginListeners): void;
  close(): void;
}

/** A login that never changes. */
export function fixedLogin(login: RedisLogin): LoginSource {
  return { login: () => Promise.resolve(login), follow: () => {}, close: () => {} };
}
