import type { NetConnectOpts, Socket } from 'node:net';
import { connect } from 'node:tls';

/** Time for a listener to identify its protocol, in milliseconds. */
const PROBE_TIMEOUT_MS = 1000;

/**
 * Returns whether a listener speaks TLS, regardless of certificates, for the message about a failed connection. Takes
 * at most a second and never rejects.
 */
export async function speaksTls(endpoint: NetConnectOpts): Promise<boolean> {
  const socket = connect({ ...endpoint, rejectUnauthorized: false });
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
export function firstResult<T>(
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
