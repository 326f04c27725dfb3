import { statSync } from 'node:fs';
import {
  type AdminToken,
  findAdminToken,
  MAX_TOKENS_BYTES,
  readAdminTokens,
} from '../../admin/admin-tokens.js';
import { isLoopbackHost } from '../../http/cross-site.js';
import type { Logger } from '../../telemetry/logger.js';
import { FileChanges } from '../file-changes.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError } from '../start-error.js';

const VARIABLE = 'ADMIN_TOKENS_FILE';
/** Mode bit of files that every user of the machine may write. */
const WORLD_WRITABLE = 0o002;

/**
 * Opens ADMIN_TOKENS_FILE, or returns undefined if it is unset. Throws {@link StartError} if the file cannot be read or
 * is invalid.
 */
export function openTokensFile(settings: Settings, log: Logger): TokensFile | undefined {
  const { adminTokensFile, debugHost, debugServerTlsCert } = settings;
  if (adminTokensFile === '') return undefined;
  if (!isLoopbackHost(debugHost) && debugServerTlsCert === '') {
    log.warn(
      `${VARIABLE} is set, but the debug port on DEBUG_HOST=${debugHost} uses plain text, so others on ` +
        'the network can read the tokens; set DEBUG_SERVER_TLS_CERT and DEBUG_SERVER_TLS_KEY, or set ' +
        'DEBUG_HOST=127.0.0.1',
    );
  }
  return new TokensFile(adminTokensFile, log);
}

/** Tokens in a file, reloaded when it changes. If the file becomes invalid, the previous tokens stay in effect. */
export class TokensFile {
  readonly #file: string;
  readonly #log: Logger;
  readonly #changes: FileChanges;
  #tokens: readonly AdminToken[];
  /**
   * Error of the latest read, or '' if it succeeded; and whether the log has warned that every user may write the file.
   */
  #failure = '';
  #warnedWritable = false;

  /** Reads the file. Throws {@link StartError}. */
  constructor(file: string, log: Logger) {
    this.#file = file;
    this.#log = log;
    this.#changes = new FileChanges([{ variable: VARIABLE, path: file, maxBytes: MAX_TOKENS_BYTES }]);
    const read = this.#readNow();
    if (typeof read === 'string') throw new StartError([read]);
    this.#tokens = read;
    this.#changes.follow((read) =>
      this.#onFilesRead(read instanceof Error ? read.message : this.#parse(read)),
    );
    this.#warnOfMode();
  }

  /** Returns the token that was sent, or undefined if it is unknown. */
  find(sent: string): AdminToken | undefined {
    return findAdminToken(this.#tokens, sent);
  }

  close(): void {
    this.#changes.close();
  }

  #onFilesRead(read: readonly AdminToken[] | string): void {
    if (typeof read === 'string') {
      // The same error is logged once, even if each read repeats it.
      if (read !== this.#failure) this.#log.error(`${read}; the previous tokens stay in effect`);
      this.#failure = read;
      return;
    }
    this.#failure = '';
    this.#warnOfMode();
    if (fingerprint(read) === fingerprint(this.#tokens)) return;
    this.#tokens = read;
    this.#log.info({ file: this.#file, tokens: read.map(({ name }) => name) }, 'new tokens are in effect');
  }

  #readNow(): readonly AdminToken[] | string {
    try {
      return this.#parse(this.#changes.readNow());
    } catch (error) {
      return (error as Error).message;
    }
  }

  #parse([bytes]: readonly Buffer[]): readonly AdminToken[] | string {
    const read = readAdminTokens(String(bytes));
    return typeof read === 'string' ? `${VARIABLE}: ${this.#file}${read}` : read;
  }

  #warnOfMode(): void {
    const stat = statSync(this.#file, { throwIfNoEntry: false });
    const isWritable = stat !== undefined && (stat.mode & WORLD_WRITABLE) !== 0;
    if (isWritable && !this.#warnedWritable) {
      this.#log.warn(
        `${VARIABLE}: every user on this machine can write to ${this.#file} and add a token; remove ` +
          'this permission (chmod o-w)',
      );
    }
    this.#warnedWritable = isWritable;
  }
}

function fingerprint(tokens: readonly AdminToken[]): string {
  return tokens.map(({ name, right, digest }) => `${name} ${right} ${digest.toString('hex')}`).join('\n');
}
