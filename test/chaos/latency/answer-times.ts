/*
 * Records how long each call takes inside weir: from reading the last bytes of the request to passing the last bytes of
 * the answer to the kernel. NODE_OPTIONS=--require loads this file into weir. It writes these lines to
 * WEIR_ANSWER_TIMES_DIR/<pid>, with times in milliseconds:
 *
 *   <remote port> <stream> <read> <took> <waited> <ran>   a call: its connection and stream; the monotonic time of the
 *                                                         read; the duration of the call; the parts of it in which
 *                                                         the kernel blocked the thread, and in which the thread ran
 *   w <now> <waited>                                      ten times per second: the total time for which the thread
 *                                                         waited for a core
 *   c <offset> <wall clock>                               a step of the wall clock
 *
 * SIGUSR2 steps the wall clock of the process to the offset from the real time in WEIR_CLOCK_OFFSET_FILE.
 */
import { openSync, readFileSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { isMainThread } from 'node:worker_threads';
import { END_STREAM, FrameReader, PREFACE, TYPE } from '../../support/h2/h2-frames.js';
import { threadTimes } from '../../support/process/thread-times.js';

const FLUSH_MS = 100;
const SAMPLE_MS = 5;

/** Methods of a socket that this file replaces. Node.js does not document the second. */
interface PatchedSocket {
  push(chunk: unknown, encoding?: BufferEncoding): boolean;
  _writeGeneric(isList: boolean, data: unknown, encoding: BufferEncoding, done: () => void): void;
}

/** State of a connection, with the open calls by stream. */
interface RecordedConnection {
  readonly reads: FrameReader;
  readonly writes: FrameReader;
  readonly open: Map<number, { readonly atMs: number; readonly ranMs: number; readonly waitedMs: number }>;
}

const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/**
 * Returns a function for the times that this thread has run, and was blocked by the kernel, since its start. A thread
 * is blocked if it waits for a core, or if its timers are late although it neither runs nor waits for a core.
 */
function blockedTimes(): () => readonly [ranMs: number, blockedMs: number] {
  const times = threadTimes();
  let sampleMs = nowMs();
  let [sampleRanMs, sampleWaitedMs] = times();
  let stalledMs = 0;
  /** Returns the time since the last sample in which the thread neither ran nor waited for a core, if it is unusual. */
  const stalledSinceSample = (atMs: number, ranMs: number, waitedMs: number): number => {
    const idleMs = atMs - sampleMs - SAMPLE_MS - (ranMs - sampleRanMs) - (waitedMs - sampleWaitedMs);
    return idleMs > SAMPLE_MS ? idleMs : 0;
  };
  setInterval(() => {
    const [ranMs, waitedMs] = times();
    const atMs = nowMs();
    stalledMs += stalledSinceSample(atMs, ranMs, waitedMs);
    [sampleMs, sampleRanMs, sampleWaitedMs] = [atMs, ranMs, waitedMs];
  }, SAMPLE_MS).unref();
  return () => {
    const [ranMs, waitedMs] = times();
    return [ranMs, waitedMs + stalledMs + stalledSinceSample(nowMs(), ranMs, waitedMs)];
  };
}

/** Returns the streams that one direction of a connection ends in these bytes. */
function endedStreams(reader: FrameReader, bytes: Uint8Array): number[] {
  return reader.read(bytes).flatMap(({ type, flags, streamId }) => {
    const isLast = (type === TYPE.DATA || type === TYPE.HEADERS) && (flags & END_STREAM) !== 0;
    return isLast ? [streamId] : [];
  });
}

function recordAnswers(folder: string, port: number): void {
  const file = openSync(join(folder, String(process.pid)), 'a');
  const times = blockedTimes();
  const connections = new WeakMap<Socket, RecordedConnection | null>();
  let lines = '';

  const connectionOf = (socket: Socket): RecordedConnection | null => {
    let connection = connections.get(socket);
    if (connection !== undefined) return connection;
    connection =
      socket.localPort === port && socket.remotePort !== undefined
        ? { reads: new FrameReader(PREFACE.length), writes: new FrameReader(), open: new Map() }
        : null;
    if (socket.localPort !== undefined) connections.set(socket, connection);
    return connection;
  };
  const recordRead = (connection: RecordedConnection, chunk: Uint8Array): void => {
    const [ranMs, waitedMs] = times();
    const start = { atMs: nowMs(), ranMs, waitedMs };
    for (const stream of endedStreams(connection.reads, chunk)) connection.open.set(stream, start);
  };
  const recordWrite = (
    socket: Socket,
    connection: RecordedConnection,
    data: unknown,
    isList: boolean,
  ): void => {
    const chunks = isList ? (data as { chunk: unknown }[]).map(({ chunk }) => chunk) : [data];
    const atMs = nowMs();
    const [ranMs, waitedMs] = times();
    for (const chunk of chunks) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, 'latin1') : (chunk as Uint8Array);
      for (const stream of endedStreams(connection.writes, bytes)) {
        const start = connection.open.get(stream);
        if (start === undefined) continue;
        connection.open.delete(stream);
        const took = (atMs - start.atMs).toFixed(2);
        const waited = (waitedMs - start.waitedMs).toFixed(2);
        const ran = (ranMs - start.ranMs).toFixed(2);
        lines += `${socket.remotePort} ${stream} ${start.atMs.toFixed(2)} ${took} ${waited} ${ran}\n`;
      }
    }
  };

  const prototype = Socket.prototype as unknown as PatchedSocket;
  const { _writeGeneric: write } = prototype;
  prototype.push = function (this: Socket, chunk: unknown, encoding?: BufferEncoding): boolean {
    const connection = connectionOf(this);
    if (connection !== null && chunk instanceof Uint8Array) recordRead(connection, chunk);
    return Readable.prototype.push.call(this, chunk, encoding);
  };
  prototype._writeGeneric = function (this: Socket, isList, data, encoding, done): void {
    const connection = connectionOf(this);
    if (connection !== null) recordWrite(this, connection, data, isList);
    write.call(this, isList, data, encoding, done);
  };

  setInterval(() => {
    lines += `w ${nowMs().toFixed(2)} ${times()[1].toFixed(2)}\n`;
    writeSync(file, lines);
    lines = '';
  }, FLUSH_MS).unref();

  const offsetFile = process.env['WEIR_CLOCK_OFFSET_FILE'];
  if (offsetFile === undefined) return;
  const realNow = Date.now;
  let offsetMs = 0;
  Date.now = () => realNow() + offsetMs;
  process.on('SIGUSR2', () => {
    offsetMs = Number(readFileSync(offsetFile, 'utf8'));
    lines += `c ${offsetMs} ${Date.now()}\n`;
  });
}

const folder = process.env['WEIR_ANSWER_TIMES_DIR'];
if (isMainThread && folder !== undefined) recordAnswers(folder, Number(process.env['GRPC_PORT']));
