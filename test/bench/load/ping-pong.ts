import { connect } from 'node:net';
import { join } from 'node:path';
import { CLIENT_PREFACE, FLAG, FRAME_TYPE } from '../../../src/h2/frames.js';
import { FrameReader, frame, type RawFrame } from '../../support/h2/h2-frames.js';
import { closeLater } from '../../support/process/close-later.js';
import { type StartedProcess, startProcess } from '../../support/process/processes.js';
import { callTemplate, writeCall } from './call-template.js';

/** Returns the bytes of frames as they were received. */
function bytesOf(frames: readonly RawFrame[]): Buffer {
  return Buffer.concat(frames.map((one) => frame(one.type, one.flags, one.streamId, one.payload)));
}

/**
 * Calls a server twice on one connection. Resolves with the frames of both answers; later answers use the entries that
 * the first one adds to the dynamic table. Rejects if the connection fails.
 */
async function answersOf(port: number, message: Uint8Array): Promise<readonly [Buffer, Buffer]> {
  const template = callTemplate(message, 'http', `127.0.0.1:${port}`);
  const socket = connect(port, '127.0.0.1');
  const reader = new FrameReader();
  const call = (streamId: number): void => {
    const output = Buffer.alloc(template.first.length);
    socket.write(output.subarray(0, writeCall(output, 0, template, streamId, 0)));
  };
  socket.write(Buffer.concat([CLIENT_PREFACE, frame(FRAME_TYPE.SETTINGS, 0, 0)]));
  call(1);
  const answers = new Map<number, RawFrame[]>([
    [1, []],
    [3, []],
  ]);
  try {
    for await (const chunk of socket) {
      for (const one of reader.read(chunk as Buffer)) {
        answers.get(one.streamId)?.push(one);
        const ended = one.type === FRAME_TYPE.HEADERS && (one.flags & FLAG.END_STREAM) !== 0;
        if (ended && one.streamId === 1) call(3);
        if (ended && one.streamId === 3)
          return [bytesOf(answers.get(1) ?? []), bytesOf(answers.get(3) ?? [])];
      }
    }
  } finally {
    socket.destroy();
  }
  throw new Error(`the server on port ${port} closed the connection before it answered two calls`);
}

/**
 * Starts a server that sends the answers of the server on `port` to `message` again and again, see
 * ping-pong-server.ts. Resolves with the process and its port.
 */
export async function startPingPong(
  port: number,
  message: Uint8Array,
): Promise<{ readonly started: StartedProcess; readonly port: number }> {
  const answers = await answersOf(port, message);
  const args = answers.map((answer) => answer.toString('base64'));
  const started = startProcess(process.execPath, [join(__dirname, '../ping-pong-server.js'), ...args]);
  closeLater(started, () => started.stop('SIGKILL'));
  return { started, port: Number(await started.waitForLine(/^\d+$/)) };
}
