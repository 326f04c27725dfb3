import { shownAddress } from '../../runtime/shown-address.js';
import { readNamedFile } from '../../server/followed-files.js';
import { readSettings } from '../../server/settings/read-settings.js';
import { defaultOf, type Settings } from '../../server/settings/settings-table.js';
import { goMilliseconds } from '../arguments.js';
import { CommandError, EXIT, type Io } from '../io.js';
import { hostOf, isAddress, loopbackAddress } from './address.js';
import type { DebugTarget } from './debug-options.js';

/** Address of a debug port, and how to verify its certificate. */
export interface DebugServer {
  readonly tls: boolean;
  /** Host name or IP address, without brackets. */
  readonly host: string;
  readonly port: number;
  /** Name that the certificate must match, if {@link host} is an address found by looking up this name. */
  readonly certificateName?: string;
  /** Whether each address of {@link host} is a server. */
  readonly isDnsName?: true;
  /**
   * File with the exact certificate that the server must show. Set for the server of this environment, whose CA may be
   * unknown.
   */
  readonly pinnedCertificate?: string;
}

/** Credentials and timeout for debug ports. */
export interface DebugAccess {
  /** Token, sent as a bearer token. */
  readonly token: string | undefined;
  /** CAs that are trusted to issue server certificates; undefined trusts the CAs of Node.js. */
  readonly ca: Buffer | undefined;
  readonly timeoutMs: number;
  /** Whether `weir check` calls, which names the port with `--debug`, and has no other options for it. */
  readonly isOfCheck?: true;
}

const DEFAULT_TIMEOUT_MS = 5000;
const MAX_TIMEOUT = '10m';
/** Maximum length of a token in characters. */
const MAX_TOKEN_CHARACTERS = 4096;

/** Formats a debug port for messages: `http://127.0.0.1:6070`. */
export function debugName({ tls, host, port }: DebugServer): string {
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Parses the address of a debug port. Returns an error message if it is invalid. `tls` applies if the address has no
 * scheme.
 */
export function readDebugServer(text: string, tls: boolean): DebugServer | string {
  const [, scheme, address = ''] = /^(?:(https?):\/\/)?(.*?)\/?$/is.exec(text) ?? [];
  if (isAddress(address) && !address.startsWith('unix:')) {
    const port = Number(/\d+$/.exec(address)?.[0]);
    return { tls: scheme === undefined ? tls : /s$/i.test(scheme), host: hostOf(address), port };
  }
  // A missing port is the most common mistake.
  const isHost = /^(?:[a-z\d.-]+|\[[\da-f:.]+\])$/i.test(address);
  const hint = isHost ? `; write ${address}:${defaultOf('debugPort')}` : '';
  return (
    `${JSON.stringify(shownAddress(text))} is not of the form host:port, http://host:port or https://host:port (IPv6 ` +
    `addresses in brackets, as in [::1]:6070)${hint}`
  );
}

/**
 * Returns the debug ports that a command calls, and how. `all` are the servers of an option that replaces `--address`.
 * Warns after the name of the command if a token is sent in plain text. Throws a {@link CommandError}.
 */
export function readDebugCall(
  command: string,
  values: DebugTarget,
  io: Pick<Io, 'environment' | 'err'>,
  all?: readonly DebugServer[],
): { readonly servers: readonly DebugServer[]; readonly access: DebugAccess } {
  const access = readAccess(command, values, io.environment);
  const servers = all ?? [readTarget(values, io.environment)];
  const clear = servers.find(
    ({ tls, host }) => !tls && !/^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/i.test(host),
  );
  if (access.token !== undefined && clear !== undefined) {
    const name = debugName(clear);
    io.err(
      `weir ${command}: the token is sent to ${name} in plain text; use https:// to protect the token\n`,
    );
  }
  return { servers, access };
}

/** Returns the debug port named by `--address`, or else by the environment. */
function readTarget(values: DebugTarget, environment: Io['environment']): DebugServer {
  const tls = values['tls-ca'] !== undefined;
  if (values.address !== undefined) {
    const server = readDebugServer(values.address, tls);
    if (typeof server === 'string') throw new CommandError(EXIT.USAGE, `--address ${server}`);
    return server;
  }
  const server = ownDebugServer(readServerSettings(environment));
  if (server === undefined) throw freePortError('DEBUG_PORT');
  // With `--tls-ca`, the certificate is verified with these CAs, as for any other server.
  return tls ? { tls, host: server.host, port: server.port } : server;
}

/** Reads the settings of the server with this environment, for a command without `--address`. */
export function readServerSettings(environment: Io['environment']): Settings {
  const read = readSettings(environment);
  if (read.ok) return read.settings;
  const advice =
    "without --address, weir reads the server's address from environment variables; correct these variables, or " +
    'specify the server with --address';
  throw new CommandError(EXIT.FAILED, ...read.errors, advice);
}

/** Returns the error of a command that cannot know the port of the server. */
export function freePortError(variable: string): CommandError {
  return new CommandError(
    EXIT.FAILED,
    `${variable} is 0, so the server chose a free port; find the port in its log line "weir serves", and specify it ` +
      'with --address',
  );
}

/** Returns the debug port of the server that these settings configure, or undefined if it chose a free port. */
export function ownDebugServer(settings: Settings): DebugServer | undefined {
  const { debugHost, debugPort: port, debugServerTlsCert: certificate } = settings;
  if (port === 0) return undefined;
  const host = hostOf(loopbackAddress(debugHost, port));
  return certificate === ''
    ? { tls: false, host, port }
    : { tls: true, host, port, pinnedCertificate: certificate };
}

/** Reads the token, CAs and timeout from the options and the environment. No message contains a token. */
function readAccess(command: string, values: DebugTarget, environment: Io['environment']): DebugAccess {
  const timeoutMs =
    values.timeout === undefined
      ? DEFAULT_TIMEOUT_MS
      : goMilliseconds(command, '--timeout', values.timeout, MAX_TIMEOUT);
  try {
    const ca = values['tls-ca'] === undefined ? undefined : readNamedFile('--tls-ca', values['tls-ca']);
    return { token: readToken(values['token-file'], environment), ca, timeoutMs };
  } catch (error) {
    throw new CommandError(EXIT.FAILED, (error as Error).message);
  }
}

/** Throws an Error with a message for the user. */
function readToken(path: string | undefined, environment: Io['environment']): string | undefined {
  const variable = environment['WEIR_ADMIN_TOKEN'] ?? '';
  if (path === undefined && variable === '') return undefined;
  const source = path === undefined ? 'WEIR_ADMIN_TOKEN' : `--token-file: ${path}`;
  const token = (path === undefined ? variable : readNamedFile('--token-file', path).toString()).trim();
  if (/\bsha256:[\da-f]{64}\b/i.test(token)) {
    throw new Error(
      `${source} contains a token hash, which belongs in ADMIN_TOKENS_FILE; use the token that weir ` +
        'bucket new-token printed with this hash',
    );
  }
  if (/^[\x21-\x7e]+$/.test(token) && token.length <= MAX_TOKEN_CHARACTERS) return token;
  throw new Error(`${source} does not contain a token; a token is one word of printable ASCII characters`);
}
