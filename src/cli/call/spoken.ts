import { connect as connectPlain, type NetConnectOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { hostOf } from './address.js';

/** What a port speaks, as far as its first bytes tell. */
export type Spoken = 'TLS' | 'HTTP/2' | 'HTTP/1.1';

/** How long each of the two attempts may take. Milliseconds. */
const PATIENCE_MS = 1000;

/** The connection preface of HTTP/2 and an empty SETTINGS frame (RFC 9113 section 3.4). */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');

/**
 * Asks a listener what it speaks, for a sentence about a call that failed: in clear text first, then over TLS with
 * whatever certificate. Two connections of a second at most; undefined where nothing can be told. Never rejects.
 */
export async function whatSpeaks(address: string): Promise<Spoken | undefined> {
  return (await askPlain(address)) ?? (await askTls(address));
}

function endpoint(address: string): NetConnectOpts {
  if (address.startsWith('unix:')) return { path: address.slice('unix:'.length) };
  return { host: hostOf(address), port: Number(/\d+$/.exec(address)?.[0]) };
}

function askPlain(address: string): Promise<Spoken | undefined> {
  return answerOf(connectPlain(endpoint(address)), (socket, told) => {
    socket.once('connect', () => socket.write(PREFACE));
    socket.once('data', (bytes: Buffer) => told(spokenBy(bytes)));
  });
}

function spokenBy(bytes: Buffer): Spoken | undefined {
  if (bytes.toString('latin1', 0, 5) === 'HTTP/') return 'HTTP/1.1';
  // A record of TLS: an alert (21) of version 3.x (RFC 8446 section 5.1).
  if (bytes[0] === 21 && bytes[1] === 3) return 'TLS';
  // A frame of type SETTINGS on stream 0, which a server sends first.
  return bytes.length >= 9 && bytes[3] === 4 && bytes.readUInt32BE(5) === 0 ? 'HTTP/2' : undefined;
}

function askTls(address: string): Promise<Spoken | undefined> {
  const socket = connectTls({ ...endpoint(address), rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  return answerOf(socket, (_socket, told) => {
    socket.once('secureConnect', () => told('TLS'));
    // Only who speaks TLS sends alerts, of a certificate that is missing for example.
    socket.once('error', (error: NodeJS.ErrnoException) => {
      told(/_ALERT_|alert/.test(`${error.code} ${error.message}`) ? 'TLS' : undefined);
    });
  });
}

function answerOf(
  socket: Socket,
  listen: (socket: Socket, told: (spoken: Spoken | undefined) => void) => void,
): Promise<Spoken | undefined> {
  return new Promise<Spoken | undefined>((resolve) => {
    listen(socket, resolve);
    socket.on('error', () => resolve(undefined));
    socket.once('close', () => resolve(undefined));
    socket.setTimeout(PATIENCE_MS, () => resolve(undefined));
  }).finally(() => socket.destroy());
}
