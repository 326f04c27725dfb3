/*
 * Put before weir with NODE_OPTIONS=--require: writes down how long each call took inside the process, from when the
 * bytes that end a request were read to when the bytes that end its answer were handed to the kernel. A line `<remote
 * port> <stream> <read> <took> <waited> <ran>` for each call in WEIR_ANSWER_TIMES_DIR/<pid>: the port that tells the
 * connections apart, the stream of the call, the monotonic clock of all processes when the request was read, in
 * milliseconds, how long the answer took, for how much of that the kernel did not let the thread go on, and for how
 * much it ran. Every tenth of a second a line `w <now> <waited>` says how long the thread has waited for a core since
 * it began.
 *
 * A signal SIGUSR2 makes the wall clock of the process step by as many milliseconds as WEIR_CLOCK_OFFSET_FILE says; a
 * line `c <offset> <wall clock>` says that it did.
 */
import { openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { isMainThread } from 'node:worker_threads';
import { FrameScan } from './frame-scanner.js';

const FLUSH_MS = 100;
const BEAT_MS = 5;
const PREFACE_BYTES = 24;

/** What can be overridden of a socket; Node.js does not document the second. */
interface Patched {
  push(chunk: unknown, encoding?: BufferEncoding): boolean;
  _writeGeneric(isList: boolean, data: unknown, encoding: BufferEncoding, done: () => void): void;
}

interface Watched {
  readonly reads: FrameScan;
  readonly writes: FrameScan;
  readonly open: Map<number, { readonly atMs: number; readonly ranMs: number; readonly waitedMs: number }>;
}

const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/**
 * Milliseconds that this thread had a core, and that it stood ready and had none, since it began; 0 where the kernel
 * does not say.
 */
function kernelTimes(): () => readonly [ranMs: number, waitedMs: number] {
  let file: number;
  try {
    file = openSync('/proc/thread-self/schedstat', 'r');
  } catch {
    return () => [0, 0];
  }
  const bytes = Buffer.alloc(80);
  return () => {
    const [ran, waited] = bytes.toString('latin1', 0, readSync(file, bytes, 0, 80, 0)).split(' ');
    return [Number(ran) / 1e6, Number(waited) / 1e6];
  };
}

/**
 * Milliseconds that this thread had a core, and for which it could do nothing, since it began: it stood ready and had
 * no core, or was held by the kernel otherwise, so that its timers came late though it did not run.
 */
function schedule(): () => readonly [ranMs: number, waitedMs: number] {
  const times = kernelTimes();
  let beatMs = nowMs();
  let [ranAtBeat, waitedAtBeat] = times();
  let held = 0;
  /** What was held since the last beat, beyond the wait for a core. */
  const heldSince = (atMs: number, ranMs: number, waitedMs: number): number => {
    const idle = atMs - beatMs - BEAT_MS - (ranMs - ranAtBeat) - (waitedMs - waitedAtBeat);
    return idle > BEAT_MS ? idle : 0;
  };
  setInterval(() => {
    const [ranMs, waitedMs] = times();
    const atMs = nowMs();
    held += heldSince(atMs, ranMs, waitedMs);
    [beatMs, ranAtBeat, waitedAtBeat] = [atMs, ranMs, waitedMs];
  }, BEAT_MS).unref();
  return () => {
    const [ranMs, waitedMs] = times();
    return [ranMs, waitedMs + held + heldSince(nowMs(), ranMs, waitedMs)];
  };
}

function watch(folder: string, port: number): void {
  const file = openSync(join(folder, String(process.pid)), 'a');
  const times = schedule();
  const sockets = new WeakMap<Socket, Watched | null>();
  let lines = '';

  const watchedOf = (socket: Socket): Watched | null => {
    let watched = sockets.get(socket);
    if (watched !== undefined) return watched;
    watched =
      socket.localPort === port && socket.remotePort !== undefined
        ? { reads: new FrameScan(PREFACE_BYTES), writes: new FrameScan(0), open: new Map() }
        : null;
    if (socket.localPort !== undefined) sockets.set(socket, watched);
    return watched;
  };
  const noteRead = (watched: Watched, chunk: Uint8Array): void => {
    const [ranMs, waitedMs] = times();
    const start = { atMs: nowMs(), ranMs, waitedMs };
    watched.reads.scan(chunk, (stream) => watched.open.set(stream, start));
  };
  const noteWritten = (socket: Socket, watched: Watched, data: unknown, isList: boolean): void => {
    const chunks = isList ? (data as { chunk: unknown }[]).map(({ chunk }) => chunk) : [data];
    const atMs = nowMs();
    const [ranMs, waitedMs] = times();
    for (const chunk of chunks) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, 'latin1') : (chunk as Uint8Array);
      watched.writes.scan(bytes, (stream) => {
        const start = watched.open.get(stream);
        if (start === undefined) return;
        watched.open.delete(stream);
        const took = (atMs - start.atMs).toFixed(2);
        const without = (waitedMs - start.waitedMs).toFixed(2);
        const ran = (ranMs - start.ranMs).toFixed(2);
        lines += `${socket.remotePort} ${stream} ${start.atMs.toFixed(2)} ${took} ${without} ${ran}\n`;
      });
    }
  };

  const prototype = Socket.prototype as unknown as Patched;
  const { _writeGeneric: write } = prototype;
  prototype.push = function (this: Socket, chunk: unknown, encoding?: BufferEncoding): boolean {
    const watched = watchedOf(this);
    if (watched !== null && chunk instanceof Uint8Array) noteRead(watched, chunk);
    return Readable.prototype.push.call(this, chunk, encoding);
  };
  prototype._writeGeneric = function (this: Socket, isList, data, encoding, done): void {
    const watched = watchedOf(this);
    if (watched !== null) noteWritten(this, watched, data, isList);
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
if (isMainThread && folder !== undefined) watch(folder, Number(process.env['GRPC_PORT']));
