import {
  secureContextOptions,
  type TlsMaterial,
  TlsMaterialError,
  type TlsOptions,
  type TlsSource,
} from '../h2/tls-material.js';
import type { Logger } from '../telemetry/logger.js';
import { FileChanges } from './file-changes.js';
import type { NamedFile } from './named-file.js';
import type { Settings } from './settings/settings-table.js';
import { StartError } from './start-error.js';

/** A port that can use TLS, with the names of its settings. */
interface TlsPort {
  readonly variables: Readonly<Record<keyof TlsMaterial, string>>;
  readonly remedies: Readonly<Record<keyof TlsMaterial, string>>;
  readonly name: string;
}

const VARIABLES = {
  cert: 'GRPC_SERVER_TLS_CERT',
  key: 'GRPC_SERVER_TLS_KEY',
  clientCa: 'GRPC_CLIENT_TLS_CACERT',
} as const;
const GRPC: TlsPort = {
  variables: VARIABLES,
  remedies: {
    cert: "specify a PEM file with the gRPC port's certificate",
    key:
      'specify a PEM file with the private key of the certificate in GRPC_SERVER_TLS_CERT; the key must ' +
      'not have a passphrase',
    clientCa: 'specify a PEM file with the CA certificates that issued the client certificates',
  },
  name: 'gRPC',
};
const DEBUG: TlsPort = {
  variables: { cert: 'DEBUG_SERVER_TLS_CERT', key: 'DEBUG_SERVER_TLS_KEY', clientCa: '' },
  remedies: {
    cert: "specify a PEM file with the debug port's certificate",
    key:
      'specify a PEM file with the private key of the certificate in DEBUG_SERVER_TLS_CERT; the key must ' +
      'not have a passphrase',
    clientCa: '',
  },
  name: 'debug',
};
/**
 * Maximum number of bytes of a file. A changed file is parsed on the event loop, which takes about 0.4 ms per KiB of CA
 * certificates.
 */
export const MAX_TLS_FILE_BYTES = 256 * 1024;
type Part = keyof typeof VARIABLES;
type Paths = Readonly<Record<Part, string>>;

/** The certificates of a port, reloaded when their files change. */
export interface TlsFiles extends TlsSource {
  close(): void;
}

/**
 * Reads the TLS settings of the gRPC port and their files. Returns undefined for plain text. Throws {@link StartError}
 * if a setting is missing or invalid.
 */
export function openTlsFiles(settings: Settings, log: Logger): TlsFiles | undefined {
  const paths: Paths = {
    cert: settings.grpcServerTlsCert,
    key: settings.grpcServerTlsKey,
    clientCa: settings.grpcClientTlsCaCert,
  };
  const clientSan = settings.grpcClientTlsSan;
  const contradictions = findContradictions(settings.grpcServerUseTls, paths, clientSan);
  if (contradictions.length > 0) throw new StartError(contradictions);
  if (!settings.grpcServerUseTls) return undefined;
  return followedFiles(GRPC, paths, clientSan === '' ? undefined : clientSan, log);
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

function followedFiles(port: TlsPort, paths: Paths, clientSan: string | undefined, log: Logger): TlsFiles {
  const changes = new FileChanges(namedFiles(port, paths));
  let read: ReadResult;
  try {
    read = readMaterial(port, paths, changes.readNow());
  } catch (error) {
    throw new StartError([(error as Error).message]);
  }
  if (!read.ok) throw new StartError([[read.error, read.remedy].filter(Boolean).join('; ')]);
  return new FollowedFiles(port, paths, { material: read.material, clientSan }, changes, log);
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

type ReadResult =
  | { readonly ok: true; readonly material: TlsMaterial }
  | {
      readonly ok: false;
      readonly error: string;
      /** Remedy for an error that ends a start; undefined if `error` contains it. */
      readonly remedy?: string;
    };

/** Returns the parts that are set, in the order in which their files are read. */
function partsOf(paths: Paths): readonly Part[] {
  return (['cert', 'key', 'clientCa'] as const).filter((part) => paths[part] !== '');
}

function namedFiles({ variables }: TlsPort, paths: Paths): readonly NamedFile[] {
  return partsOf(paths).map((part) => ({
    variable: variables[part],
    path: paths[part],
    maxBytes: MAX_TLS_FILE_BYTES,
  }));
}

/** Checks the content of the files. `error` names the variable, the file and the problem. */
function readMaterial({ variables, remedies }: TlsPort, paths: Paths, read: readonly Buffer[]): ReadResult {
  const texts: Partial<Record<Part, string>> = {};
  for (const [at, part] of partsOf(paths).entries()) texts[part] = String(read[at]);
  const material = { cert: texts.cert ?? '', key: texts.key ?? '', clientCa: texts.clientCa };
  try {
    secureContextOptions(material);
    return { ok: true, material };
  } catch (error) {
    if (!(error instanceof TlsMaterialError)) throw error;
    const { part, message } = error;
    return { ok: false, error: `${variables[part]}: ${paths[part]}: ${message}`, remedy: remedies[part] };
  }
}

class FollowedFiles implements TlsFiles {
  readonly options: TlsOptions;
  readonly #port: TlsPort;
  readonly #paths: Paths;
  readonly #files: readonly string[];
  readonly #log: Logger;
  readonly #changes: FileChanges;
  #inForce: TlsMaterial;
  /** Error of the latest read, or '' if it succeeded. */
  #failure = '';

  constructor(port: TlsPort, paths: Paths, options: TlsOptions, changes: FileChanges, log: Logger) {
    this.#port = port;
    this.#paths = paths;
    this.options = options;
    this.#log = log;
    this.#inForce = options.material;
    this.#files = Object.values(paths).filter((path) => path !== '');
    this.#changes = changes;
  }

  follow(setTls: (material: TlsMaterial) => void): void {
    this.#changes.follow((contents) => this.#reload(contents, setTls));
  }

  close(): void {
    this.#changes.close();
  }

  #reload(contents: readonly Buffer[] | Error, setTls: (material: TlsMaterial) => void): void {
    const read: ReadResult =
      contents instanceof Error
        ? { ok: false, error: contents.message }
        : readMaterial(this.#port, this.#paths, contents);
    if (!read.ok) {
      // The same error is logged once, even if each read repeats it.
      if (read.error !== this.#failure) {
        this.#log.error(`${read.error}; the previous certificates stay in effect`);
      }
      this.#failure = read.error;
      return;
    }
    const { material } = read;
    const { cert, key, clientCa } = this.#inForce;
    this.#failure = '';
    if (material.cert === cert && material.key === key && material.clientCa === clientCa) return;
    setTls(material);
    this.#inForce = material;
    this.#log.info(
      { files: this.#files },
      `new certificates are in effect for new ${this.#port.name} connections`,
    );
  }
}
