import { type ServiceError, status } from '@grpc/grpc-js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import { certificateFault } from '../../runtime/texts.js';
import type { ServerTarget } from './target.js';

/** Returns the message of a failed call without the prefixes and suffixes that grpc-js adds. */
export function plainDetails({ details }: Pick<ServiceError, 'details'>): string {
  return withoutAddressSecrets(details)
    .replace(/\s+/g, ' ')
    .replace(/^No connection established\. Last error: (?:Error: )?/, '')
    .replace(/\.? Resolution note:.*$/, '')
    .replace(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)$/, '')
    .trim();
}

/**
 * Explains why a call failed and what to do, in a sentence without a full stop. `method` is the gRPC path of the call,
 * `timeoutMs` is its timeout, and `whenLate` is the advice if the call timed out.
 */
export function failureAdvice(
  error: ServiceError,
  target: ServerTarget,
  {
    method,
    timeoutMs,
    whenLate,
  }: { readonly method: string; readonly timeoutMs: number; readonly whenLate: string },
): string {
  const { address } = target;
  const details = plainDetails(error);
  if (/ECONNREFUSED|ENOENT/.test(details)) {
    return `nothing listens on ${address}; start weir serve, or specify the server with --address`;
  }
  if (/ENOTFOUND|EAI_AGAIN|^Name resolution failed/.test(details)) {
    return `the host name in ${address} cannot be resolved; specify the correct address with --address`;
  }
  const certificate = certificateAdvice(details, target);
  if (certificate !== undefined) return certificate;
  const other = error.code === status.UNAVAILABLE ? protocolMismatch(details, target) : undefined;
  if (other !== undefined) return other;
  switch (error.code) {
    case status.DEADLINE_EXCEEDED:
      return `no answer from ${address} within ${timeoutMs} ms; ${whenLate}`;
    case status.UNIMPLEMENTED:
      return `${address} does not serve ${method}; specify the server's gRPC port with --address`;
    case status.UNAVAILABLE:
      return `${details}; check that ${address} is the server's gRPC port and that its store is available`;
    default:
      return `${status[error.code] ?? error.code}: ${details}`;
  }
}

function certificateAdvice(details: string, { address, channel }: ServerTarget): string | undefined {
  if (!channel.tls) return undefined;
  if (/altnames/.test(details)) {
    return `the certificate of ${address} is for another name (${details}); set --address to a name in the certificate`;
  }
  if (
    /self[- ]signed certificate|unable to (?:verify|get)|certificate has expired|not yet valid/.test(details)
  ) {
    const remedy =
      channel.ca === undefined
        ? 'set --ca to the file with the CA certificate'
        : 'check that the --ca file contains the CA of this certificate, and that the certificate has not expired';
    return `the certificate of ${address} is not accepted (${certificateFault(details)}); ${remedy}`;
  }
  // TLS reports a missing client certificate as an alert, and HTTP/2 as INADEQUATE_SECURITY.
  if (!/certificate required|handshake failure|Protocol not secure enough/.test(details)) return undefined;
  return channel.cert === undefined
    ? `${address} requires a client certificate; specify one with --cert and --key`
    : `${address} rejects the client certificate in --cert; see the server log for the reason`;
}

/** Returns advice if the error of Node.js means that the listener uses another protocol, else undefined. */
function protocolMismatch(details: string, { address, channel, own }: ServerTarget): string | undefined {
  if (/wrong version number|disconnected before secure TLS/.test(details)) {
    return (
      `the TLS handshake with ${address} failed; if it does not speak TLS, remove --tls, --ca, --cert and --key` +
      (own ? ', and unset GRPC_SERVER_USE_TLS' : '')
    );
  }
  if (/^Protocol error/.test(details)) {
    return `${address} does not speak gRPC; specify the server's gRPC port (GRPC_PORT) with --address`;
  }
  // A listener with TLS closes a connection that does not begin with a handshake.
  if (channel.tls || !/^Failed to connect/.test(details)) return undefined;
  return (
    `${address} closed the connection without an answer; if it speaks TLS, set --ca to the file with the CA ` +
    'certificate, or use --tls if Node.js trusts the CA' +
    (own ? ', or set GRPC_SERVER_USE_TLS=true in this environment' : '')
  );
}
