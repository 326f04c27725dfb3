import { createServer, type Socket } from 'node:net';
import { CLIENT_PREFACE, FLAG, FRAME_HEADER_BYTES, FRAME_TYPE } from '../../src/h2/frames.js';
import { frame } from '../support/h2/h2-frames.js';

/**
 * A server that answers each call with the same bytes, without decoding anything: the least that a decision can cost on
 * this machine. It reads only the headers of frames, and writes the answers to a chunk at once. Its arguments are the
 * frames of the first answer on a connection and of all others, in base64. Prints its port, and runs until somebody
 * kills it.
 */
const [first = Buffer.alloc(0), later = first] = process.argv
  .slice(2)
  .map((frames) => Buffer.from(frames, 'base64'));

const WINDOW = Buffer.alloc(4);
WINDOW.writeUInt32BE(2 ** 30);
/** Our SETTINGS, the acknowledgement of the client's, and a window for all its requests. */
const OPENING = Buffer.concat([
  frame(FRAME_TYPE.SETTINGS, 0, 0, Buffer.alloc(0)),
  frame(FRAME_TYPE.SETTINGS, FLAG.ACK, 0, Buffer.alloc(0)),
  frame(FRAME_TYPE.WINDOW_UPDATE, 0, 0, WINDOW),
]);

/** Writes the frames of an answer to a stream. Returns their end. */
function writeAnswer(output: Buffer, start: number, answer: Buffer, streamId: number): number {
  output.set(answer, start);
  const end = start + answer.length;
  let at = start;
  while (at < end) {
    output.writeUInt32BE(streamId, at + 5);
    at += FRAME_HEADER_BYTES + output.readUIntBE(at, 3);
  }
  return end;
}

function serve(socket: Socket): void {
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.write(OPENING);
  let rest: Buffer = Buffer.alloc(0);
  let isFirst = true;
  let skipped = CLIENT_PREFACE.length;
  socket.on('data', (chunk: Buffer) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const output = Buffer.allocUnsafe(
      (bytes.length / FRAME_HEADER_BYTES + 1) * Math.max(first.length, later.length),
    );
    let at = skipped;
    let written = 0;
    while (at + FRAME_HEADER_BYTES <= bytes.length) {
      const next = at + FRAME_HEADER_BYTES + bytes.readUIntBE(at, 3);
      if (next > bytes.length) break;
      const type = bytes[at + 3];
      const ends = ((bytes[at + 4] as number) & FLAG.END_STREAM) !== 0;
      if (ends && (type === FRAME_TYPE.DATA || type === FRAME_TYPE.HEADERS)) {
        written = writeAnswer(output, written, isFirst ? first : later, bytes.readUInt32BE(at + 5));
        isFirst = false;
      }
      at = next;
    }
    skipped = Math.max(0, at - bytes.length);
    rest = bytes.subarray(at);
    if (written > 0) socket.write(output.subarray(0, written));
  });
}

const server = createServer(serve);
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.stdout.write(`${address.port}\n`);
});
