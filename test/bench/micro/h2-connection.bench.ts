/*
 * The HTTP/2 engine without sockets and gRPC. It receives chunks of 64 requests with a body, as h2load sends them, and
 * answers with headers, a message and trailers. Each call is a request. To run it: `node
 * build/test/bench/micro/h2-connection.bench.js [part of a name …]`.
 */

import type { ByteSink } from '../../../src/h2/byte-sink.js';
import { H2Connection } from '../../../src/h2/connection.js';
import type { ConnectionEvents } from '../../../src/h2/connection-owner.js';
import type { RequestHandler, ServerStream } from '../../../src/h2/request-handler.js';
import {
  block,
  data,
  END_HEADERS,
  END_STREAM,
  frame,
  OK_HEADERS,
  OK_TRAILERS,
  PREFACE,
  SETTINGS_ACK,
  settings,
  TYPE,
  windowUpdate,
} from '../../support/h2/h2-frames.js';
import { TEST_LIMITS } from '../../support/h2/h2-limits.js';
import { type MicroCase, runCases } from './measure.js';

const REQUESTS = 64;
const BODY_BYTES = 60;
const PREFIX = Buffer.of(0, 0, 0, 0, 30);
const MESSAGE = Buffer.alloc(30);
const FIELDS = block(
  ':method: POST',
  ':scheme: http',
  ':path: /envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
);
/** Fields that the first request adds to the dynamic table (RFC 7541 section 6.2.1). */
const CONSTANT = [
  'te: trailers',
  'content-type: application/grpc',
  'user-agent: h2load',
  ':authority: weir:8081',
];
const FIRST = Buffer.concat(
  CONSTANT.toReversed().map((field) => Buffer.concat([Buffer.of(0x40), block(field).subarray(1)])),
);
/** The indices of these fields in later requests. :authority is the oldest entry. */
const LATER = Buffer.of(0xc1, 0xc0, 0xbf, 0xbe);

const SINK: ByteSink = { bufferedBytes: 0, write: () => true, end: () => {}, destroy: () => {} };
const EVENTS: ConnectionEvents = {
  onOutput: () => {},
  onEstablished: () => {},
  onPingAck: () => {},
  onProtocolError: (_connection, error) => {
    throw new Error(error);
  },
};

function answer(stream: ServerStream): void {
  stream.sendResponse(OK_HEADERS, PREFIX, MESSAGE, OK_TRAILERS);
}

interface CaseOptions {
  /** Whether all HEADERS precede all DATA, as in h2load. Otherwise, each DATA follows its HEADERS. */
  readonly split?: boolean;
  /** Whether the requests of a chunk have a field with different values. */
  readonly distinct?: boolean;
  /** Whether the answers follow after the chunk and are flushed together, as with Redis. */
  readonly later?: boolean;
  /** Whether a chunk ends inside a frame. */
  readonly cut?: boolean;
}

function requests({ split = false, distinct = false, later = false, cut = false }: CaseOptions): MicroCase {
  return () => {
    const waiting: ServerStream[] = [];
    const handler: RequestHandler = {
      onRequest: () => {},
      onData: (stream) => {
        if (later) waiting.push(stream);
        else answer(stream);
      },
      onTrailers: () => {},
      onDrained: () => {},
      onReset: () => {},
    };
    const options = { peer: 'bench', limits: TEST_LIMITS, nowMs: () => performance.now() };
    const connection = new H2Connection(SINK, handler, EVENTS, options);
    const head = frame(TYPE.HEADERS, END_HEADERS | END_STREAM, 1, Buffer.concat([FIELDS, FIRST]));
    connection.receive(Buffer.concat([PREFACE, settings(), SETTINGS_ACK, head]));

    const heads: Buffer[] = [];
    const bodies: Buffer[] = [];
    for (let index = 0; index < REQUESTS; index++) {
      const own = distinct ? block(`x-request-id: ${String(index).padStart(36, '0')}`) : Buffer.alloc(0);
      const fields = Buffer.concat([FIELDS, LATER, own]);
      heads.push(frame(TYPE.HEADERS, END_HEADERS, 2 * index, fields));
      bodies.push(data(2 * index, BODY_BYTES, END_STREAM));
    }
    const frames = split
      ? [...heads, ...bodies]
      : heads.flatMap((each, index) => [each, bodies[index] as Buffer]);
    // The peer returns flow-control credit for the answers.
    const chunk = Buffer.concat([...frames, windowUpdate(0, REQUESTS * (PREFIX.length + MESSAGE.length))]);
    const ids: { readonly at: number; readonly offset: number }[] = [];
    for (let at = 0; at < chunk.length - 13; at += 9 + chunk.readUIntBE(at, 3)) {
      ids.push({ at: at + 5, offset: chunk.readUInt32BE(at + 5) });
    }
    let firstId = 3;
    const middle = Math.floor(chunk.length / 2) + 5;
    const parts = cut ? [chunk.subarray(0, middle), chunk.subarray(middle)] : [chunk];
    return (call) => {
      if (call % REQUESTS !== 0) return;
      for (const { at, offset } of ids) chunk.writeUInt32BE(firstId + offset, at);
      firstId += 2 * REQUESTS;
      for (const part of parts) connection.receive(part);
      if (!later) return;
      for (const stream of waiting) answer(stream);
      waiting.length = 0;
      connection.flush();
    };
  };
}

runCases(__filename, {
  'adjacent frames': requests({}),
  'all HEADERS before all DATA': requests({ split: true }),
  'a chunk cut inside a frame': requests({ cut: true }),
  'answers after the chunk': requests({ later: true }),
  'another field for each request': requests({ distinct: true }),
  'another field for each request, all HEADERS first': requests({ split: true, distinct: true }),
});
