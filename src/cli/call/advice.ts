import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type ServiceError, status } from '@grpc/grpc-js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import { certificateFault } from '../../runtime/texts.js';
import { hostOf } from './address.js';
import type { ServerTarget } from './target.js';

/** Protocol of a port, detected from its first bytes. */
type Protocol = 'TLS' | 'HTTP/2' | 'HTTP/1.1';

/** Time for a listener to identify its protocol, in milliseconds. */
const PROBE_TIMEOUT_MS = 1000;
/** The connection preface of HTTP/2 and an empty SETTINGS frame (RFC 9113 section 3.4). */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');

/**
 * Detects the protocol of a listener, for the message about a failed call. Tries clear text first, and then TLS with
 * any certificate, on two connections of at most one second each. Resolves with undefined if the protocol is unknown,
 * and never rejects.
 */
export async function detectProtocol(address: string): Promise<Protocol | undefined> {
  const endpoint = endpointOf(address);
  return (await probePlaintext(endpoint)) ?? ((await speaksTls(endpoint)) ? 'TLS' : undefined);
}

function endpointOf(address: string): NetConnectOpts {
  if (address.startsWith('unix:')) return { path: address.slice('unix:'.length) };
  return { host: hostOf(address), port: Number(/\d+$/.exec(address)?.[0]) };
}

function probePlaintext(endpoint: NetConnectOpts): Promise<Protocol | undefined> {
  const socket = connect(endpoint);
  return firstResult<Protocol>(socket, (tell) => {
    socket.once('connect', () => socket.write(PREFACE));
    socket.once('data', (bytes: Buffer) => tell(protocolOf(bytes)));
  });
}

function protocolOf(bytes: Buffer): Protocol | undefined {
  if (bytes.toString('latin1', 0, 5) === 'HTTP/') return 'HTTP/1.1';
  // A TLS record: an alert (21) of version 3.x (RFC 8446 section 5.1).
  if (bytes[0] === 21 && bytes[1] === 3) return 'TLS';
  // A SETTINGS frame on stream 0, which an HTTP/2 server sends first (RFC 9113 section 3.4).
  return bytes.length >= 9 && bytes[3] === 4 && bytes.readUInt32BE(5) === 0 ? 'HTTP/2' : undefined;
}

/**
 * Returns whether a listener speaks TLS, regardless of certificates, for the message about a failed connection. Takes
 * at most a second and never rejects.
 */
async function speaksTls(endpoint: NetConnectOpts): Promise<boolean> {
  const socket = connectTls({ ...endpoint, rejectUnauthorized: false });
  const isTls = await firstResult<boolean>(socket, (report) => {
    socket.once('secureConnect', () => report(true));
    // Only TLS servers send alerts, for example about a missing client certificate.
    socket.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      report(/alert/i.test(`${code} ${message}`));
    });
  });
  return isTls === true;
}

/**
 * Returns the value that `listen` passes to its callback for a socket, or undefined if the socket ends, or is silent
 * for a second. Closes the socket.
 */
function firstResult<T>(
  socket: Socket,
  listen: (report: (result: T | undefined) => void) => void,
): Promise<T | undefined> {
  return new Promise<T | undefined>((resolve) => {
    const timer = setTimeout(() => resolve(undefined), PROBE_TIMEOUT_MS).unref();
    listen(resolve);
    socket.on('error', () => resolve(undefined));
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  }).finally(() => socket.destroy());
}

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
export async function failureAdvice(
  error: ServiceError,
  target: ServerTarget,
  {
    method,
    timeoutMs,
    whenLate,
  }: { readonly method: string; readonly timeoutMs: number; readonly whenLate: string },
): Promise<string> {
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
  if (error.code === status.UNAVAILABLE || error.code === status.DEADLINE_EXCEEDED) {
    const other = await protocolMismatch(target);
    if (other !== undefined) return other;
  }
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

/** Returns advice if the call failed because of a certificate, else undefined. */
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

/** Returns advice if the listener does not use the protocol of the call, else undefined. */
async function protocolMismatch({ address, channel, own }: ServerTarget): Promise<string | undefined> {
  const protocol = await detectProtocol(address);
  if (protocol === 'HTTP/1.1') {
    return `${address} speaks HTTP/1.1, not gRPC; specify the server's gRPC port (GRPC_PORT) with --address`;
  }
  if (protocol === 'TLS' && !channel.tls) {
    return (
      `${address} speaks TLS, but weir connected without TLS; set --ca to the file with the CA ` +
      'certificate, or use --tls if Node.js trusts the CA' +
      (own ? ', or set GRPC_SERVER_USE_TLS=true in this environment' : '')
    );
  }
  if (protocol === 'HTTP/2' && channel.tls) {
    return (
      `${address} does not speak TLS, but weir connected with TLS; remove --tls, --ca, --cert and --key` +
      (own ? ', and unset GRPC_SERVER_USE_TLS' : '')
    );
  }
  return undefined;
}
