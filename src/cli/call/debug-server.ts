import { shownAddress } from '../../runtime/shown-address.js';
import { readNamedFile } from '../../server/settings/named-file.js';
import { readSettings } from '../../server/settings/read-settings.js';
import { defaultOf } from '../../server/settings/settings-table.js';
import { goMilliseconds } from '../go-milliseconds.js';
import type { Io } from '../io.js';
import { hostOf, isAddress } from './address.js';
import type { DebugTarget } from './debug-options.js';
import { loopbackAddress } from './target.js';

/** Address of a debug port, and how to verify its certificate. */
export interface DebugServer {
  readonly tls: boolean;
  /** Host name or IP address, without brackets. */
  readonly host: string;
  readonly port: number;
  /** Name that the certificate must match, if {@link host} is an address found by looking up this name. */
  readonly certificateName?: string;
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
}

/**
 * Result of reading {@link DEBUG_OPTIONS}: `usage` if the command line is invalid, and `failed` if the environment or a
 * named file is.
 */
export type Found<T> =
  | { readonly kind: 'found'; readonly found: T }
  | { readonly kind: 'usage'; readonly message: string }
  | { readonly kind: 'failed'; readonly messages: readonly string[] };

const DEFAULT_TIMEOUT_MS = 5000;
const MAX_TIMEOUT_MS = 600_000;
/** Maximum length of a token in characters. */
const MAX_TOKEN_CHARACTERS = 4096;

/** Returns the URL of a debug port for messages, such as `http://127.0.0.1:6070`. */
export function debugName({ tls, host, port }: DebugServer): string {
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Returns whether the token would be sent without TLS to a host other than loopback. */
export function sendsTokenInClear({ tls, host }: DebugServer, { token }: DebugAccess): boolean {
  return token !== undefined && !tls && !/^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/i.test(host);
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

/** Returns the debug port named by `--address`, or else by the environment. */
export function readDebugTarget(values: DebugTarget, environment: Io['environment']): Found<DebugServer> {
  const tls = values['tls-ca'] !== undefined;
  if (values.address !== undefined) {
    const server = readDebugServer(values.address, tls);
    return typeof server === 'string'
      ? { kind: 'usage', message: `--address ${server}` }
      : { kind: 'found', found: server };
  }
  const read = readSettings(environment);
  if (!read.ok) {
    const advice =
      "without --address, weir reads the server's address from environment variables; correct these " +
      'variables, or specify the server with --address';
    return { kind: 'failed', messages: [...read.errors, advice] };
  }
  const { debugHost, debugPort, debugServerTlsCert: certificate } = read.settings;
  if (debugPort === 0) {
    const message =
      'DEBUG_PORT is 0, so the server chose a free port; find the port in its log line "weir serves", ' +
      'and specify it with --address';
    return { kind: 'failed', messages: [message] };
  }
  const server = { host: hostOf(loopbackAddress(debugHost, debugPort)), port: debugPort };
  // With `--tls-ca`, the certificate is verified with these CAs, as for any other server.
  const found =
    certificate === '' || tls ? { ...server, tls } : { ...server, tls: true, pinnedCertificate: certificate };
  return { kind: 'found', found };
}

/** Reads the token, CAs and timeout from the options and the environment. No message contains a token. */
export function readDebugAccess(values: DebugTarget, environment: Io['environment']): Found<DebugAccess> {
  const timeoutMs =
    values.timeout === undefined
      ? DEFAULT_TIMEOUT_MS
      : goMilliseconds('--timeout', values.timeout, MAX_TIMEOUT_MS);
  if (typeof timeoutMs === 'string') return { kind: 'usage', message: timeoutMs };
  try {
    const ca = values['tls-ca'] === undefined ? undefined : readNamedFile('--tls-ca', values['tls-ca']);
    return { kind: 'found', found: { token: readToken(values['token-file'], environment), ca, timeoutMs } };
  } catch (error) {
    return { kind: 'failed', messages: [(error as Error).message] };
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
