import { certificateFault } from '../../certificate-fault.js';
import { networkMessage } from '../../network-message.js';

/** Why a table of `plans` in Redis could not be read. A label of metrics. */
export type SourceFault =
  /** No connection, or an invalid response. */
  | 'connection'
  /** The password cannot be read, or Redis refuses the login. */
  | 'login'
  /** The key is not a hash. */
  | 'content'
  /** The reading ended too early. */
  | 'transfer'
  | 'timeout'
  | 'too_large';

/** A table could not be read. The message is a part of a sentence. */
export interface SourceFailure {
  readonly kind: 'failed';
  readonly reason: SourceFault;
  readonly message: string;
}

/** An error with a known reason. */
export class SourceError extends Error {
  readonly reason: SourceFault;

  constructor(reason: SourceFault, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Returns the failure for an error. Errors other than a SourceError concern the connection. */
export function failureFor(error: Error): SourceFailure {
  if (error instanceof SourceError) return { kind: 'failed', reason: error.reason, message: error.message };
  return { kind: 'failed', reason: 'connection', message: connectionMessage(networkMessage(error)) };
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
