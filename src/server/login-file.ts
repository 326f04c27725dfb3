import type { LoginListeners, LoginSource } from '../storage/redis/connection/login-source.js';
import { parseLogin, type RedisLogin } from '../storage/redis/connection/redis-login.js';
import { FileChanges } from './file-changes.js';
import { readNamedFile } from './settings/named-file.js';

/** A login that is kept in a file: read at each connection, and when the file changes. */
export class LoginFile implements LoginSource {
  readonly #variable: string;
  readonly #file: string;
  readonly #changes: FileChanges;
  #listeners: LoginListeners | undefined;
  #login: RedisLogin;

  /** `variable` names the file, as in REDIS_AUTH_FILE. Throws an Error with both where it cannot be read. */
  constructor(variable: string, file: string) {
    this.#variable = variable;
    this.#file = file;
    this.#changes = new FileChanges([file]);
    this.#login = this.#read();
  }

  async login(): Promise<RedisLogin> {
    this.#renew();
    return this.#login;
  }

  follow(listeners: LoginListeners): void {
    this.#listeners = listeners;
    this.#changes.follow(() => this.#renew());
  }

  close(): void {
    this.#changes.close();
  }

  /** Reads the file again, and tells of another login in it; one that cannot be read leaves the one before. */
  #renew(): void {
    const { username, password } = this.#login;
    try {
      const read = this.#read();
      // Whoever writes it in place empties it first.
      if (read.password === undefined && password !== undefined)
        throw new Error(`${this.#variable}: ${this.#file} is empty; write the password into it`);
      this.#listeners?.failed(undefined);
      if (read.username === username && read.password === password) return;
      this.#login = read;
      this.#listeners?.renewed(read);
    } catch (error) {
      this.#listeners?.failed(`${(error as Error).message}; the login before it stays in use`);
    }
  }

  #read(): RedisLogin {
    const text = readNamedFile(this.#variable, this.#file).toString();
    return parseLogin(text.replace(/\r?\n$/, ''));
  }
}
