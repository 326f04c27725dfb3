import { certificateFault } from '../../certificate-fault.js';
import { networkMessage } from '../../network-message.js';
import { sha256Hex } from '../../policy/names/sha256.js';
import { loadRegularFile, messageOf } from '../../regular-file.js';

/** Why a source could not be read. A label of metrics. */
export type SourceFault =
  /** No connection, or an invalid response. */
  | 'connection'
  /** The token cannot be read or used, or Redis refuses the login. */
  | 'login'
  /** A status other than 200, or a 304 to a request without an ETag. */
  | 'status'
  /** A response that is not a table, such as an empty one or a page for people. */
  | 'content'
  /** A response that ended too early, or is damaged. */
  | 'transfer'
  | 'timeout'
  | 'too_large'
  /** The rows could not be stored. */
  | 'disk';

/** A source could not be read. The message is a part of a sentence. */
export interface SourceFailure {
  readonly kind: 'failed';
  readonly reason: SourceFault;
  readonly message: string;
}

/** The current rows of a source. */
export interface SourceRows {
  readonly kind: 'rows';
  /** The bytes of a file in the format that the ending of the address names. Rejects if the transfer fails. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Called when the rows are stored, so that the next answer may be `unchanged`. */
  stored(): void;
}

/** A place that has the rows of `plans`, and is not a file. A new kind of source is a class with this interface. */
export interface PlanSource {
  /**
   * Asks for the rows. Rejects if the source cannot be reached. `isStored`: whether this process has stored the last
   * rows, so that the answer may be `unchanged`.
   */
  open(isStored: boolean, signal: AbortSignal): Promise<SourceRows | SourceFailure | 'unchanged'>;
  /** Returns the reason for a rejection of {@link open} or of its rows. */
  failureOf(error: unknown): SourceFailure;
}

/** An error with a known reason. */
export class SourceError extends Error {
  readonly reason: SourceFault;

  constructor(reason: SourceFault, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Returns the failure for an error. `reason` applies to errors other than a SourceError. */
export function failureFor(error: Error, reason: SourceFault): SourceFailure {
  if (error instanceof SourceError) return { kind: 'failed', reason: error.reason, message: error.message };
  return { kind: 'failed', reason, message: connectionMessage(networkMessage(error)) };
}

function connectionMessage(text: string): string {
  if (/certificate/i.test(text)) {
    const fault = certificateFault(text);
    return `the certificate of the server is not accepted (${fault}); for a private CA, set NODE_EXTRA_CA_CERTS`;
  }
  // The rest of the error of OpenSSL is for its developers.
  const tls = /:SSL routines:[^:]*:([^:]*):/.exec(text)?.[1];
  return tls === undefined ? text : `the TLS handshake failed (${tls}); check that the port speaks TLS`;
}

/** Maximum size of the file with the token, in bytes. */
const MAX_TOKEN_BYTES = 16_384;

/** Reads the file in PLANS_TOKEN_PATH. Rejects with a SourceError that names it, and does not contain the token. */
export async function readToken(file: string): Promise<string> {
  let token: string;
  try {
    token = (await loadRegularFile(file, MAX_TOKEN_BYTES)).toString('utf8').trim();
  } catch (error) {
    throw new SourceError('login', `PLANS_TOKEN_PATH: ${messageOf(error, file)}`);
  }
  if (token === '')
    throw new SourceError('login', `PLANS_TOKEN_PATH: "${file}" is empty; write the token into it`);
  return token;
}

/** Returns whether `plans.from` is an address instead of a file. */
export function isSourceAddress(from: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(from);
}

/** Returns whether an address is a hash in Redis. */
export function isRedisAddress(address: string): boolean {
  return /^rediss?:/i.test(address);
}

/** Returns the name of the file in PLANS_CACHE_PATH that has the rows of a source. */
export function storedFileOf(address: string): string {
  return `source-${sha256Hex(address).slice(0, 16)}`;
}
