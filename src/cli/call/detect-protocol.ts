import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { hostOf } from './address.js';

/** Protocol of a port, detected from its first bytes. */
export type Protocol = 'TLS' | 'HTTP/2' | 'HTTP/1.1';

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
