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
