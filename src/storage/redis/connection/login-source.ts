import type { RedisLogin } from './redis-login.js';

/** Where the login of a Redis comes from. */
export interface LoginSource {
  /**
   * The login for a connection that is about to be made. `refused` says that Redis did not accept the one before.
   * Rejects with an Error for the log where there is none to be had; the one before is used again then.
   */
  login(refused: boolean): Promise<RedisLogin>;
  /** `listener` is called with a new login that live connections are to be given. */
  onRenewed(listener: (login: RedisLogin) => void): void;
  close(): void;
}

/** A login that never changes. */
export function fixedLogin(login: RedisLogin): LoginSource {
  return { login: () => Promise.resolve(login), onRenewed: () => {}, close: () => {} };
}

/** A login that `read` reads anew for each connection; what it throws is logged. */
export function readLogin(read: () => RedisLogin): LoginSource {
  return { login: async () => read(), onRenewed: () => {}, close: () => {} };
}
