import { Redis, type RedisOptions } from 'ioredis';

/** Who logs in to Redis. */
export interface RedisLogin {
  readonly username?: string;
  readonly password?: string;
}

/** Reads REDIS_AUTH: a password, or `user:password`. Empty is none. */
export function parseLogin(text: string): RedisLogin {
  if (text === '') return {};
  const colon = text.indexOf(':');
  if (colon === -1) return { password: text };
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** An ioredis that asks for its login before each connection: a password may have changed since the last. */
export class LoginRedis extends Redis {
  private readonly login: () => RedisLogin;

  /** `login` must not throw. Connects only when told to. */
  constructor(options: RedisOptions & { replyMapping: 'legacy' }, login: () => RedisLogin) {
    super({ ...options, lazyConnect: true });
    this.login = login;
  }

  override connect(...args: Parameters<Redis['connect']>): Promise<void> {
    const { username, password } = this.login();
    // What is undefined here is not there for ioredis either.
    Object.assign(this.options, { username, password });
    return super.connect(...args);
  }
}
