import {
  type LoginListeners,
  type LoginSource,
  parseLogin,
  type RedisLogin,
} from '../storage/redis/connection/connection-options.js';
import { FollowedFiles } from './followed-files.js';

/** Maximum size of the file, in bytes. */
export const MAX_LOGIN_FILE_BYTES = 64 * 1024;

/** A login in a file. It is read for each connection, and when the file changes. */
export class LoginFile implements LoginSource {
  readonly #file: FollowedFiles<RedisLogin>;
  readonly #listeners = new Set<LoginListeners>();

  /** Reads the file that a setting such as REDIS_AUTH_FILE names. Throws StartError if it cannot be read. */
  constructor(variable: string, path: string) {
    this.#file = new FollowedFiles(
      [{ variable, path, maxBytes: MAX_LOGIN_FILE_BYTES }],
      ([text = ''], previous) => {
        const login = parseLogin(text.replace(/\r?\n$/, ''));
        // Programs that write the file in place truncate it first.
        if (login.password === undefined && previous?.password !== undefined)
          throw new Error(`${variable}: ${path} is empty; write the password into the file`);
        return login;
      },
    );
    this.#file.follow({
      read: (login, { username, password }) => {
        this.#first()?.failed(undefined);
        if (login.username === username && login.password === password) return;
        for (const { renewed } of this.#listeners) renewed(login);
      },
      failed: (sentence) => this.#first()?.failed(`${sentence}; the previous login stays in use`),
    });
  }

  async login(): Promise<RedisLogin> {
    await this.#file.refresh();
    return this.#file.content;
  }

  follow(listeners: LoginListeners): () => void {
    this.#listeners.add(listeners);
    return () => this.#listeners.delete(listeners);
  }

  close(): void {
    this.#file.close();
  }

  #first(): LoginListeners | undefined {
    const [first] = this.#listeners;
    return first;
  }
}
