import {
  secureContextOptions,
  type TlsMaterial,
  TlsMaterialError,
  type TlsOptions,
  type TlsSource,
} from '../h2/tls-material.js';
import type { Logger } from '../telemetry/logger.js';
import { FileChanges } from './file-changes.js';
import type { NamedFile } from './settings/named-file.js';
import type { Settings } from './settings/settings-table.js';
import { StartError } from './start-error.js';

/** A port that speaks TLS, in the words of its settings. */
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
    cert: 'name the PEM file with the certificate of the gRPC port',
    key: 'name the PEM file, without a passphrase, of the key that belongs to GRPC_SERVER_TLS_CERT',
    clientCa: 'name the PEM file with the issuers of client certificates',
  },
  name: 'gRPC',
};
const DEBUG: TlsPort = {
  variables: { cert: 'DEBUG_SERVER_TLS_CERT', key: 'DEBUG_SERVER_TLS_KEY', clientCa: '' },
  remedies: {
    cert: 'name the PEM file with the certificate of the debug port',
    key: 'name the PEM file, without a passphrase, of the key that belongs to DEBUG_SERVER_TLS_CERT',
    clientCa: '',
  },
  name: 'debug',
};
/**
 * Most bytes of a file that is followed: it is parsed on the event loop when it changes, which takes about 0.4 ms for
 * each KiB of issuers.
 */
export const MAX_TLS_FILE_BYTES = 256 * 1024;
type Part = keyof typeof VARIABLES;
type Paths = Readonly<Record<Part, string>>;

/** The certificates of a port, followed as their files change. */
export interface TlsFiles extends TlsSource {
  close(): void;
}

/**
 * Reads the TLS settings of the gRPC port and their files; undefined for clear text. Throws {@link StartError} with
 * what is missing or bad.
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
 * Reads the certificate of the debug port and its key; undefined for clear text. Throws {@link StartError} with what is
 * bad.
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
        'GRPC_CLIENT_TLS_SAN needs GRPC_CLIENT_TLS_CACERT, or any client could claim the name; set both, or none',
      );
    }
    return lines;
  }
  // Somebody who sets these believes that clients are checked.
  if (paths.clientCa !== '')
    lines.push(
      'GRPC_CLIENT_TLS_CACERT needs GRPC_SERVER_USE_TLS=true; set that, too, or unset GRPC_CLIENT_TLS_CACERT',
    );
  if (clientSan !== '')
    lines.push(
      'GRPC_CLIENT_TLS_SAN needs GRPC_SERVER_USE_TLS=true; set that, too, or unset GRPC_CLIENT_TLS_SAN',
    );
  return lines;
}

type ReadResult =
  | { readonly ok: true; readonly material: TlsMaterial }
  | {
      readonly ok: false;
      readonly error: string;
      /** What to do about a start that ends with it, where `error` does not say it. */
      readonly remedy?: string;
    };

/** The parts that files hold, in the order in which these are read. */
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

/** Checks what was read; `error` names the variable, the file and what is wrong with it. */
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
  /** What the latest reading failed of, '' if it did not. */
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
      // Told once, however often it is met.
      if (read.error !== this.#failure) {
        this.#log.error(`${read.error}; the certificates in force stay`);
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
      `new certificates are in force for new ${this.#port.name} connections`,
    );
  }
}
