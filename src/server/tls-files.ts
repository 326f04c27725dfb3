import { isDeepStrictEqual } from 'node:util';
import {
  secureContextOptions,
  type TlsMaterial,
  TlsMaterialError,
  type TlsSource,
} from '../h2/tls-material.js';
import type { Logger } from '../telemetry/logger.js';
import { FollowedFiles } from './followed-files.js';
import type { Settings } from './settings/settings-table.js';
import { StartError } from './start-error.js';

type Part = keyof TlsMaterial;

/** A port that can use TLS. */
interface TlsPort {
  readonly name: string;
  /** The settings that name its files. */
  readonly variables: Readonly<Record<Part, string>>;
}

const VARIABLES = {
  cert: 'GRPC_SERVER_TLS_CERT',
  key: 'GRPC_SERVER_TLS_KEY',
  clientCa: 'GRPC_CLIENT_TLS_CACERT',
} as const;
const GRPC: TlsPort = { name: 'gRPC', variables: VARIABLES };
const DEBUG: TlsPort = {
  name: 'debug',
  variables: { cert: 'DEBUG_SERVER_TLS_CERT', key: 'DEBUG_SERVER_TLS_KEY', clientCa: '' },
};
/**
 * Maximum number of bytes of a file. A changed file is parsed on the event loop, which takes about 0.4 ms per KiB of CA
 * certificates.
 */
export const MAX_TLS_FILE_BYTES = 256 * 1024;
type Paths = Readonly<Record<Part, string>>;

/** The certificates of a port, reloaded when their files change. */
export interface TlsFiles extends TlsSource {
  /** The certificates in effect. */
  readonly current: TlsMaterial;
  close(): void;
}

/**
 * Reads the TLS settings of the gRPC port and their files. Returns undefined for plain text. Throws {@link StartError}
 * if a setting is missing or invalid. With `previous`, the certificates of another process, these stay in effect while
 * a file is invalid.
 */
export function openTlsFiles(settings: Settings, log: Logger, previous?: TlsMaterial): TlsFiles | undefined {
  const paths: Paths = {
    cert: settings.grpcServerTlsCert,
    key: settings.grpcServerTlsKey,
    clientCa: settings.grpcClientTlsCaCert,
  };
  const clientSan = settings.grpcClientTlsSan;
  const contradictions = findContradictions(settings.grpcServerUseTls, paths, clientSan);
  if (contradictions.length > 0) throw new StartError(contradictions);
  if (!settings.grpcServerUseTls) return undefined;
  return followedFiles(GRPC, paths, clientSan === '' ? undefined : clientSan, log, previous);
}

/**
 * Reads the certificate and the key of the debug port. Returns undefined for plain text. Throws {@link StartError} if a
 * file is invalid.
 */
export function openDebugTlsFiles(settings: Settings, log: Logger): TlsFiles | undefined {
  const { debugServerTlsCert: cert, debugServerTlsKey: key } = settings;
  if (cert === '' && key === '') return undefined;
  return followedFiles(DEBUG, { cert, key, clientCa: '' }, undefined, log);
}

function followedFiles(
  port: TlsPort,
  paths: Paths,
  clientSan: string | undefined,
  log: Logger,
  previous?: TlsMaterial,
): TlsFiles {
  const parts = (['cert', 'key', 'clientCa'] as const).filter((part) => paths[part] !== '');
  const named = parts.map((part) => ({
    variable: port.variables[part],
    path: paths[part],
    maxBytes: MAX_TLS_FILE_BYTES,
  }));
  const parse = (texts: readonly string[]): TlsMaterial =>
    checked(port, paths, { cert: '', key: '', clientCa: undefined, ...partTexts(parts, texts) });
  const files = new FollowedFiles(named, parse, previous);
  return {
    get current() {
      return files.content;
    },
    options: { material: files.content, clientSan },
    follow(setTls) {
      files.follow({
        read(material, previous) {
          if (isDeepStrictEqual(material, previous)) return;
          setTls(material);
          log.info(
            { files: named.map(({ path }) => path) },
            `new certificates are in effect for new ${port.name} connections`,
          );
        },
        failed: (sentence) => log.error(`${sentence}; the previous certificates stay in effect`),
      });
    },
    close: () => files.close(),
  };
}

function partTexts(parts: readonly Part[], texts: readonly string[]): Partial<TlsMaterial> {
  return Object.fromEntries(parts.map((part, at) => [part, texts[at]]));
}

/** Returns valid material. Otherwise, throws an Error that names the variable, the file, the problem and the remedy. */
function checked({ name, variables }: TlsPort, paths: Paths, material: TlsMaterial): TlsMaterial {
  try {
    secureContextOptions(material);
    return material;
  } catch (error) {
    if (!(error instanceof TlsMaterialError)) throw error;
    const { part, message } = error;
    const remedy = {
      cert: `specify a PEM file with the ${name} port's certificate`,
      key:
        `specify a PEM file with the private key of the certificate in ${variables.cert}; the key must not ` +
        'have a passphrase',
      clientCa: 'specify a PEM file with the CA certificates that issued the client certificates',
    }[part];
    throw new Error(`${variables[part]}: ${paths[part]}: ${message}; ${remedy}`);
  }
}

function findContradictions(useTls: boolean, paths: Paths, clientSan: string): readonly string[] {
  const lines: string[] = [];
  if (useTls) {
    for (const part of ['cert', 'key'] as const) {
      if (paths[part] === '')
        lines.push(
          `GRPC_SERVER_USE_TLS is on: set ${VARIABLES[part]} to a PEM file, or unset GRPC_SERVER_USE_TLS`,
        );
    }
    if (clientSan !== '' && paths.clientCa === '') {
      lines.push(
        'GRPC_CLIENT_TLS_SAN needs GRPC_CLIENT_TLS_CACERT, because without a CA, any client could claim ' +
          'the subject alternative name; set both variables, or neither',
      );
    }
    return lines;
  }
  // An operator who sets these expects weir to check clients.
  if (paths.clientCa !== '')
    lines.push(
      'GRPC_CLIENT_TLS_CACERT needs TLS; set GRPC_SERVER_USE_TLS=true, or unset GRPC_CLIENT_TLS_CACERT',
    );
  if (clientSan !== '')
    lines.push('GRPC_CLIENT_TLS_SAN needs TLS; set GRPC_SERVER_USE_TLS=true, or unset GRPC_CLIENT_TLS_SAN');
  return lines;
}
