import { describe, expect } from '@jest/globals';
import {
  block,
  data,
  END_HEADERS,
  END_STREAM,
  frame,
  type H2Peer,
  headers,
  PADDED,
  PRIORITY,
  ping,
  protocolTest,
  REQUEST,
  request,
  TYPE,
  windowUpdate,
  words,
} from '../../support/h2/h2-peer.js';

/**
 * Expects a connection error (RFC 9113 section 5.4.1): GOAWAY, the end of the connection, and no effect of the frame.
 */
function expectEnd(peer: H2Peer, code: string): void {
  expect(peer.received().at(-1)).toMatch(new RegExp(`^GOAWAY \\d+ ${code}$`));
  expect(peer.sink.closed).toBe('ended');
  expect(peer.events.at(-1)).toMatch(/^broken: /);
  expect(peer.connection.openStreams).toBe(0);
}

const connectionErrors: [name: string, code: string, bytes: Buffer][] = [
  ['a frame larger than SETTINGS_MAX_FRAME_SIZE', 'FRAME_SIZE_ERROR', data(1, 16_385)],
  ['DATA on an even stream', 'PROTOCOL_ERROR', data(2, 'x')],
  ['padded DATA without a payload', 'PROTOCOL_ERROR', frame(TYPE.DATA, PADDED, 1)],
  [
    'HEADERS too short for their priority',
    'FRAME_SIZE_ERROR',
    frame(TYPE.HEADERS, END_HEADERS | PRIORITY, 3, words(0)),
  ],
  ['GOAWAY of 7 bytes', 'FRAME_SIZE_ERROR', frame(TYPE.GOAWAY, 0, 0, Buffer.alloc(7))],
  [
    'PRIORITY that makes an idle stream depend on itself',
    'PROTOCOL_ERROR',
    frame(TYPE.PRIORITY, 0, 5, Buffer.concat([words(5), Buffer.of(1)])),
  ],
];

describe('frames that end the connection', () => {
  for (const [name, code, bytes] of connectionErrors) {
    protocolTest(name, (peer) => {
      peer.greet().send(request(1), bytes, ping());
      expectEnd(peer, code);
      expect(peer.handler.take()).toEqual(['request 1 POST /call', `reset 1 ${code}`]);
    });
  }

  for (const [name, inside] of [
    ['CONTINUATION of another stream', frame(TYPE.CONTINUATION, END_HEADERS, 1, block(...REQUEST))],
    ['PING', ping()],
  ] as const) {
    protocolTest(`${name} inside a header block`, (peer) => {
      peer.greet().send(request(1), frame(TYPE.HEADERS, 0, 3, block(':method: POST')), inside);
      expectEnd(peer, 'PROTOCOL_ERROR');
    });
  }

  protocolTest('the last GOAWAY names the last stream and comes after the answers before it', (peer) => {
    peer.handler.onHead = (stream) => stream.reset(0);
    peer.greet().send(request(1), request(7), ping('before!!'), data(0, 'x'), ping('after!!!'));
    expect(peer.received()).toEqual([
      'RST_STREAM 1 NO_ERROR',
      'RST_STREAM 7 NO_ERROR',
      'PING before!! ack',
      'GOAWAY 7 PROTOCOL_ERROR',
    ]);
  });
});

const streamErrors: [name: string, code: string, bytes: Buffer][] = [
  ['WINDOW_UPDATE of 0', 'PROTOCOL_ERROR', windowUpdate(1, 0)],
  ['WINDOW_UPDATE beyond 2^31-1', 'FLOW_CONTROL_ERROR', windowUpdate(1, 0x7fff_ffff)],
  ['PRIORITY of 4 bytes', 'FRAME_SIZE_ERROR', frame(TYPE.PRIORITY, 0, 1, words(0))],
  [
    'PRIORITY on itself',
    'PROTOCOL_ERROR',
    frame(TYPE.PRIORITY, 0, 1, Buffer.concat([words(1), Buffer.of(1)])),
  ],
  [
    'trailers with a priority on itself',
    'PROTOCOL_ERROR',
    frame(
      TYPE.HEADERS,
      END_HEADERS | END_STREAM | PRIORITY,
      1,
      Buffer.concat([words(0x8000_0001), Buffer.of(1), block('a: b')]),
    ),
  ],
  ['trailers that do not end the stream', 'PROTOCOL_ERROR', headers(1, 0, 'a: b')],
  ['trailers with a pseudo-header field', 'PROTOCOL_ERROR', headers(1, END_STREAM, ':path: /')],
  ['trailers with a field of HTTP/1', 'PROTOCOL_ERROR', headers(1, END_STREAM, 'connection: close')],
];

describe('frames that end only their stream', () => {
  for (const [name, code, bytes] of streamErrors) {
    protocolTest(name, (peer) => {
      peer.greet().send(request(1), bytes, ping());
      expect(peer.received()).toEqual([`RST_STREAM 1 ${code}`, 'PING 01234567 ack']);
      expect(peer.handler.take()).toEqual(['request 1 POST /call', `reset 1 ${code}`]);
      expect(peer.events).toEqual(['greeted']);
    });
  }

  protocolTest('a request that depends on itself', (peer) => {
    const payload = Buffer.concat([words(1), Buffer.of(1), block(...REQUEST)]);
    peer.greet().send(frame(TYPE.HEADERS, END_HEADERS | PRIORITY, 1, payload), ping());
    expect(peer.received()).toEqual(['RST_STREAM 1 PROTOCOL_ERROR', 'PING 01234567 ack']);
    expect(peer.handler.take()).toEqual([]);
  });
});

describe('padding', () => {
  protocolTest('of HEADERS and DATA is not part of them', (peer) => {
    const fields = block(...REQUEST);
    const padded = Buffer.concat([Buffer.of(4), fields, Buffer.alloc(4)]);
    const both = Buffer.concat([Buffer.of(2), words(0), Buffer.of(16), fields, Buffer.alloc(2)]);
    peer
      .greet()
      .send(
        frame(TYPE.HEADERS, END_HEADERS | PADDED, 1, padded),
        frame(TYPE.HEADERS, END_HEADERS | PADDED | PRIORITY, 3, both),
        frame(TYPE.DATA, PADDED, 1, Buffer.from('\x03abc\0\0\0', 'latin1')),
        frame(TYPE.DATA, PADDED | END_STREAM, 3, Buffer.from('\x02\0\0', 'latin1')),
      );
    expect(peer.handler.take()).toEqual([
      'request 1 POST /call',
      'request 3 POST /call',
      'data 1 "abc"',
      'data 3 "" end',
    ]);
  });
});
