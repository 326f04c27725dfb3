import { statSync } from 'node:fs';
import {
  type AdminToken,
  findAdminToken,
  MAX_TOKENS_BYTES,
  readAdminTokens,
} from '../../admin/admin-tokens.js';
import { isLoopbackHost } from '../../http/cross-site.js';
import type { Closers } from '../../runtime/closers.js';
import type { Logger } from '../../telemetry/logger.js';
import { FollowedFiles } from '../followed-files.js';
import type { Settings } from '../settings/settings-table.js';
import { openDebugTlsFiles, type TlsFiles } from '../tls-files.js';

const VARIABLE = 'ADMIN_TOKENS_FILE';
/** Mode bit of files that every user of the machine may write. */
const WORLD_WRITABLE = 0o002;

/**
 * Opens ADMIN_TOKENS_FILE, or returns undefined if it is unset. Throws StartError if the file cannot be read or is
 * invalid.
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
  readonly #path: string;
  readonly #log: Logger;
  readonly #file: FollowedFiles<readonly AdminToken[]>;
  /** Whether the log has warned that every user may write the file. */
  #warnedWritable = false;

  constructor(path: string, log: Logger) {
    this.#path = path;
    this.#log = log;
    this.#file = new FollowedFiles(
      [{ variable: VARIABLE, path, maxBytes: MAX_TOKENS_BYTES }],
      ([text = '']) => {
        const tokens = readAdminTokens(text);
        if (typeof tokens === 'string') throw new Error(`${VARIABLE}: ${path}${tokens}`);
        return tokens;
      },
    );
    this.#warnOfMode();
    this.#file.follow({
      read: (tokens, previous) => {
        this.#warnOfMode();
        if (fingerprint(tokens) === fingerprint(previous)) return;
        log.info({ file: path, tokens: tokens.map(({ name }) => name) }, 'new tokens are in effect');
      },
      failed: (sentence) => log.error(`${sentence}; the previous tokens stay in effect`),
    });
  }

  find(sent: string): AdminToken | undefined {
    return findAdminToken(this.#file.content, sent);
  }

  close(): void {
    this.#file.close();
  }

  #warnOfMode(): void {
    const stat = statSync(this.#path, { throwIfNoEntry: false });
    const isWritable = stat !== undefined && (stat.mode & WORLD_WRITABLE) !== 0;
    if (isWritable && !this.#warnedWritable) {
      this.#log.warn(
        `${VARIABLE}: every user on this machine can write to ${this.#path} and add a token; remove ` +
          'this permission (chmod o-w)',
      );
    }
    this.#warnedWritable = isWritable;
  }
}

function fingerprint(tokens: readonly AdminToken[]): string {
  return tokens.map(({ name, right, digest }) => `${name} ${right} ${digest.toString('hex')}`).join('\n');
}

/** Files that protect the debug port, reloaded when they change. */
export interface DebugFiles {
  /** Undefined for plain text. */
  readonly tls: TlsFiles | undefined;
  readonly tokens: TokensFile | undefined;
}

/** Reads the files that protect the debug port. Throws StartError if one is invalid. */
export function openDebugFiles(settings: Settings, log: Logger, closers: Closers): DebugFiles {
  const tls = openDebugTlsFiles(settings, log);
  closers.add(async () => tls?.close());
  const tokens = openTokensFile(settings, log);
  closers.add(async () => tokens?.close());
  return { tls, tokens };
}
