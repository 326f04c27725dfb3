import type { NetConnectOpts, Socket } from 'node:net';
import { connect } from 'node:tls';

/** How long a listener has to show what it speaks. Milliseconds. */
const PATIENCE_MS = 1000;

/**
 * Whether a listener speaks TLS, whatever its certificate and whether or not it would have us: for a sentence about a
 * connection that failed. Takes a second at most; never rejects.
 */
export async function speaksTls(endpoint: NetConnectOpts): Promise<boolean> {
  const socket = connect({ ...endpoint, rejectUnauthorized: false });
  const told = await firstWord<boolean>(socket, (tell) => {
    socket.once('secureConnect', () => tell(true));
    // Only who speaks TLS sends alerts, about a client certificate that is missing for example.
    socket.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      tell(/alert/i.test(`${code} ${message}`));
    });
  });
  return told === true;
}

/** What `listen` tells of a socket, or undefined if it ends or is silent for a second before; the socket is closed. */
export function firstWord<T>(
  socket: Socket,
  listen: (tell: (word: T | undefined) => void) => void,
): Promise<T | undefined> {
  return new Promise<T | undefined>((resolve) => {
    const timer = setTimeout(() => resolve(undefined), PATIENCE_MS).unref();
    listen(resolve);
    socket.on('error', () => resolve(undefined));
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  }).finally(() => socket.destroy());
}
