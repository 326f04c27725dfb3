import type { Closers } from '../../runtime/closers.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Settings } from '../settings/settings-table.js';
import { openDebugTlsFiles, type TlsFiles } from '../tls-files.js';
import { openTokensFile, type TokensFile } from './tokens-file.js';

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
