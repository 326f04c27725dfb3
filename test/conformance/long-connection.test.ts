import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { H2Connection } from '../../src/h2/connection.js';
import { CLIENT_PREFACE, FLAG, FRAME_TYPE } from '../../src/h2/frames.js';
import { HeaderField } from '../../src/h2/hpack/header-field.js';
import type { RequestHandler, ServerStream } from '../../src/h2/request-handler.js';
import { bytesBody } from '../support/h2/bytes-body.js';
import { frame } from '../support/h2/h2-frames.js';
import { TEST_LIMITS } from '../support/h2/h2-limits.js';

const ROUNDS = 20_000;
/** Maximum growth of the heap. It varies by less, and would exceed this if 10 bytes of each stream remained. */
const GROWTH_BYTES = 1_000_000;
const OK = [new HeaderField(':status', '200'), new HeaderField('content-type', 'application/grpc', true)];
const TRAILERS = [new HeaderField('grpc-status', '0', true)];
const PREFIX = Buffer.from([0, 0, 0, 0, 4]);
const BODY = Buffer.from('body');
const NONE = Buffer.alloc(0);
const CANCEL = Buffer.from([0, 0, 0, 8]);

/** Encodes a literal field (RFC 7541 section 6.2). With `indexing`, the field enters the dynamic table. */
function literal(name: string, value: string, indexing: boolean): Buffer {
  return Buffer.concat([
    Buffer.of(indexing ? 0x40 : 0, name.length),
    Buffer.from(name),
    Buffer.of(value.length),
    Buffer.from(value),
  ]);
}

function request(id: number, path: string, flags: number, round: number): Buffer {
  const block = Buffer.concat([
    Buffer.of(0x83, 0x86), // POST, http
    literal(':path', path, false),
    // Changes the dynamic table in every other round.
    literal('x-trace', String(round), round % 2 === 0),
  ]);
  return frame(FRAME_TYPE.HEADERS, FLAG.END_HEADERS | flags, id, block);
}

function trailers(id: number): Buffer {
  return frame(FRAME_TYPE.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, id, literal('x-end', '1', false));
}

/** Answers each request when it has ended, and resets requests for /reset at once. */
class Handler implements RequestHandler {
  answered = 0;
  resets = 0;

  onRequest(stream: ServerStream, endStream: boolean): void {
    if (stream.head.path === '/reset') stream.reset(8);
    else if (endStream) this.answer(stream);
  }

  onData(stream: ServerStream, _chunk: Buffer, start: number, end: number, endStream: boolean): void {
    stream.consumed(end - start);
    if (endStream) this.answer(stream);
  }

  onTrailers(stream: ServerStream): void {
    this.answer(stream);
  }

  onDrained(): void {}

  onReset(): void {
    this.resets += 1;
  }

  private answer(stream: ServerStream): void {
    this.answered += 1;
    stream.sendResponse(OK, bytesBody(PREFIX, BODY), TRAILERS);
  }
}

test('a connection keeps no memory of ended streams, regardless of how they ended', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const heapBytes = (): number => {
    collectGarbage();
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };

  let nowMs = 0;
  let written = 0;
  let broken = '';
  const handler = new Handler();
  const sink = {
    bufferedBytes: 0,
    write: (bytes: Buffer) => {
      written += bytes.length;
      return true;
    },
    end: () => {},
    destroy: () => {},
  };
  const events = {
    onOutput: () => {},
    onEstablished: () => {},
    onPingAck: () => {},
    onProtocolError: (_: unknown, error: string) => {
      broken = error;
    },
  };
  const connection = new H2Connection(sink, handler, events, {
    peer: 'test',
    limits: TEST_LIMITS,
    nowMs: () => nowMs,
  });
  const serve = (round: number): void => {
    nowMs += 1;
    const id = 1 + 10 * round;
    const window = Buffer.alloc(4);
    window.writeUInt32BE(9 * 3);
    connection.receive(
      Buffer.concat([
        request(id, '/ends', FLAG.END_STREAM, round),
        request(id + 2, '/data', 0, round),
        frame(FRAME_TYPE.DATA, FLAG.END_STREAM, id + 2, BODY),
        request(id + 4, '/trailers', 0, round),
        trailers(id + 4),
        request(id + 6, '/abandoned', 0, round),
        frame(FRAME_TYPE.DATA, 0, id + 6, BODY),
        frame(FRAME_TYPE.RST_STREAM, 0, id + 6, CANCEL),
        request(id + 8, '/reset', 0, round),
        frame(FRAME_TYPE.DATA, FLAG.END_STREAM, id + 8, BODY),
        frame(FRAME_TYPE.WINDOW_UPDATE, 0, 0, window),
      ]),
    );
  };

  connection.receive(Buffer.concat([CLIENT_PREFACE, frame(FRAME_TYPE.SETTINGS, 0, 0, NONE)]));
  // The number of remembered resets is bounded. These requests reach the bound.
  for (let round = 0; round < TEST_LIMITS.maxRememberedResets; round++) serve(round);
  const before = heapBytes();
  for (let round = 0; round < ROUNDS; round++) serve(TEST_LIMITS.maxRememberedResets + round);
  const after = heapBytes();

  const rounds = TEST_LIMITS.maxRememberedResets + ROUNDS;
  expect(broken).toBe('');
  expect(handler).toMatchObject({ answered: 3 * rounds, resets: rounds });
  expect(connection.openStreams).toBe(0);
  expect(connection.unconsumedBytes).toBe(0);
  expect(written).toBeGreaterThan(100 * rounds);
  expect(after - before).toBeLessThan(GROWTH_BYTES);
});
