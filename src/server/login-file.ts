import {
  type LoginListeners,
  type LoginSource,
  parseLogin,
  type RedisLogin,
} from '../storage/redis/connection/login.js';
import { FileChanges } from './file-changes.js';

/** Maximum size of the file, in bytes. */
export const MAX_LOGIN_FILE_BYTES = 64 * 1024;

/** A login in a file. It is read for each connection, and when the file changes. */
export class LoginFile implements LoginSource {
  readonly #variable: string;
  readonly #file: string;
  readonly #changes: FileChanges;
  readonly #listeners = new Set<LoginListeners>();
  #login: RedisLogin;

  /**
   * Reads the file. `variable` is the setting that names it, such as REDIS_AUTH_FILE. Throws an Error with both if the
   * file cannot be read.
   */
  constructor(variable: string, file: string) {
    this.#variable = variable;
    this.#file = file;
    this.#changes = new FileChanges([{ variable, path: file, maxBytes: MAX_LOGIN_FILE_BYTES }]);
    this.#login = readLogin(this.#changes.readNow());
    this.#changes.follow((read) => this.#onFilesRead(read));
  }

  async login(): Promise<RedisLogin> {
    await this.#changes.refresh();
    return this.#login;
  }

  follow(listeners: LoginListeners): () => void {
    this.#listeners.add(listeners);
    return () => this.#listeners.delete(listeners);
  }

  close(): void {
    this.#changes.close();
  }

  /** Reports a changed login. If the file cannot be read, the previous login stays in use. */
  #onFilesRead(contents: readonly Buffer[] | Error): void {
    const { username, password } = this.#login;
    const [first] = this.#listeners;
    const read = contents instanceof Error ? contents : readLogin(contents);
    // Programs that write the file in place truncate it first.
    const isEmpty = !(read instanceof Error) && read.password === undefined && password !== undefined;
    if (read instanceof Error || isEmpty) {
      const why = isEmpty
        ? `${this.#variable}: ${this.#file} is empty; write the password into the file`
        : (read as Error).message;
      first?.failed(`${why}; the previous login stays in use`);
      return;
    }
    first?.failed(undefined);
    if (read.username === username && read.password === password) return;
    this.#login = read;
    for (const { renewed } of this.#listeners) renewed(read);
  }
}

function readLogin([bytes]: readonly Buffer[]): RedisLogin {
  return parseLogin(String(bytes).replace(/\r?\n$/, ''));
}
