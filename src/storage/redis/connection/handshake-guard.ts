import type { Socket } from 'node:net';

/** Most bytes that Redis may answer to a login: some lines of OK or of an error. */
const MAX_BYTES = 16_384;

const LF = 10;
const PLUS = 43;
const MINUS = 45;

/**
 * Lets ioredis read nothing of `stream` but what its login is answered with, lines of OK and of errors, and not many:
 * its own reader makes an array of any length that it is told of. `broken` is called once with what is wrong, and
 * nothing is handed on from then on: the connection must be closed. Call it before data have come.
 */
export function guardHandshake(stream: Socket, broken: (reason: string) => void): void {
  const readers = stream.listeners('data') as ((chunk: Buffer) => void)[];
  let bytes = 0;
  let lineStart = true;
  let over = false;
  stream.removeAllListeners('data');
  stream.on('data', (chunk: Buffer) => {
    if (over) return;
    bytes += chunk.length;
    over = bytes > MAX_BYTES;
    for (let i = 0; i < chunk.length && !over; i++) {
      const byte = chunk[i];
      if (lineStart && byte !== PLUS && byte !== MINUS) over = true;
      lineStart = byte === LF;
    }
    if (over) broken('malformed reply: no answer to a login');
    else for (const read of readers) read(chunk);
  });
}
