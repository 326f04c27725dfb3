import { describe, expect, test } from '@jest/globals';
import { HeaderField } from '../../../src/h2/hpack/header-field.js';
import { DEFAULT_LIMITS } from '../../../src/h2/limits.js';
import {
  ACK,
  answer,
  answerLines,
  block,
  CHUNK_SPLITS,
  data,
  END_HEADERS,
  END_STREAM,
  frame,
  H2Peer,
  headers,
  PADDED,
  PREFACE,
  PRIORITY,
  ping,
  protocolTest,
  REQUEST,
  request,
  settings,
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

describe('SETTINGS from the peer', () => {
  protocolTest('a HEADER_TABLE_SIZE that falls and rises within one frame empties our table', (peer) => {
    peer.handler.onComplete = (stream) => answer(stream);
    peer.greet().send(request(1, END_STREAM), settings([1, 0], [1, 4096]));
    peer.received();
    peer.send(request(3, END_STREAM));
    const block = Buffer.concat(peer.sink.written).subarray(9);
    // RFC 7541 section 4.2: the smallest and the last size are signalled. The block does not refer to entries of the
    // old table.
    expect(block.subarray(0, 4).toString('hex')).toBe('203fe11f');
    expect(block.includes('application/grpc')).toBe(true);
    expect(peer.received()).toEqual(answerLines(3, 'ok'));
  });

  protocolTest('both values of ENABLE_PUSH are allowed', (peer) => {
    peer.greet().send(settings([2, 0]), settings([2, 1]));
    expect(peer.received()).toEqual(['SETTINGS ack', 'SETTINGS ack']);
  });

  protocolTest('MAX_FRAME_SIZE bounds DATA frames, and may grow', (peer) => {
    peer.handler.onComplete = (stream) => answer(stream, 'x'.repeat(40_000));
    peer.greet().send(request(1, END_STREAM), settings([5, 20_000]));
    peer.send(request(3, END_STREAM));
    const sizes = peer.received().filter((line) => line.startsWith('DATA'));
    expect(sizes).toEqual([
      'DATA 1 16384 bytes',
      'DATA 1 16384 bytes',
      'DATA 1 7232 bytes',
      'DATA 3 20000 bytes',
      'DATA 3 5535 bytes',
    ]);
  });

  protocolTest('a header block past MAX_FRAME_SIZE leaves in CONTINUATION frames', (peer) => {
    const large = [new HeaderField(':status', '200'), new HeaderField('x', 'a'.repeat(40_000))];
    peer.handler.onComplete = (stream) => stream.sendHeaders(large, true);
    peer.greet().send(request(1, END_STREAM));
    const lines = peer.received();
    expect(lines.slice(0, 2)).toEqual(['HEADERS 1 16384 bytes open end', 'CONTINUATION 1 16384 bytes open']);
    expect(lines).toHaveLength(3);
    expect(lines[2]).toMatch(/^CONTINUATION 1 \d+ bytes$/);
  });

  protocolTest('HEADER_TABLE_SIZE of 0 empties the table of the encoder', (peer) => {
    peer.handler.onComplete = (stream) => answer(stream);
    peer.greet().send(request(1, END_STREAM), request(3, END_STREAM));
    peer.received();
    peer.send(settings([1, 0]), request(5, END_STREAM), request(7, END_STREAM));
    // A table size update of 0 comes first (RFC 7541 section 6.3). Otherwise the peer's decoder would fail on an index.
    expect(peer.received()).toContain('HEADERS 7 :status=200 content-type=application/grpc');
  });
});

describe('SETTINGS from weir', () => {
  protocolTest('are followed by a larger window, and the acknowledgement of theirs', (peer) => {
    peer.send(PREFACE, settings());
    expect(peer.received()).toEqual([
      'SETTINGS 1=4096 3=1024 4=65535 5=16384 6=16384',
      `WINDOW_UPDATE ${DEFAULT_LIMITS.connectionWindowBytes - 65_535}`,
      'SETTINGS ack',
    ]);
    expect(peer.events).toEqual(['greeted']);
  });

  protocolTest(
    'a window below the default counts once they are acknowledged',
    (peer) => {
      peer.send(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings(), request(1));
      peer.send(frame(TYPE.DATA, 0, 1, Buffer.alloc(101)));
      peer.send(frame(TYPE.SETTINGS, 1, 0), request(3), frame(TYPE.DATA, 0, 3, Buffer.alloc(101)));
      expect(peer.received().slice(3)).toEqual(['RST_STREAM 3 FLOW_CONTROL_ERROR']);
    },
    { streamWindowBytes: 100 },
  );

  protocolTest(
    'other limits are announced',
    (peer) => {
      peer.send(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'));
      expect(peer.received()).toEqual(['SETTINGS 1=0 3=7 4=100 5=20000 6=300']);
    },
    {
      headerTableBytes: 0,
      maxConcurrentStreams: 7,
      streamWindowBytes: 100,
      maxFrameBytes: 20_000,
      maxHeaderListBytes: 300,
      connectionWindowBytes: 65_535,
    },
  );
});

const GOAWAY = 'GOAWAY 0 PROTOCOL_ERROR';

describe('the beginning of a connection', () => {
  test('nothing is sent before the preface has arrived', () => {
    const peer = new H2Peer();
    peer.send(PREFACE.subarray(0, 23));
    expect(peer.received()).toEqual([]);
    peer.send(PREFACE.subarray(23));
    expect(peer.received()).toHaveLength(2);
  });

  protocolTest('another frame than SETTINGS comes first', (peer) => {
    peer.send(PREFACE, ping());
    expect(peer.received().at(-1)).toBe(GOAWAY);
    expect(peer.sink.closed).toBe('ended');
    expect(peer.events).toEqual(["broken: the peer's first frame is not SETTINGS (not greeted)"]);
  });

  protocolTest('an acknowledgement of SETTINGS comes first', (peer) => {
    peer.send(PREFACE, frame(TYPE.SETTINGS, ACK, 0));
    expect(peer.received().at(-1)).toBe(GOAWAY);
  });

  protocolTest('nothing is taken after the end', (peer) => {
    peer.send(PREFACE, ping(), settings(), ping());
    peer.send(ping());
    expect(peer.received().filter((line) => line.startsWith('PING'))).toEqual([]);
  });

  for (const line of [
    'GET / HTTP/1.1',
    'POST /json HTTP/1.1',
    'PUT /a HTTP/1.0',
    'OPTIONS * HTTP/1.1',
    'PRI /x HTTP/1.1',
  ]) {
    protocolTest(`${line} gets an HTTP/1.1 answer`, (peer) => {
      peer.send(Buffer.from(`${line}\r\nhost: weir\r\n\r\n`));
      const [head, body] = peer.receivedText().split('\r\n\r\n');
      expect(head).toMatch(/^HTTP\/1\.1 505 /);
      expect(head).toContain(`content-length: ${body?.length}`);
      expect(body).toContain('gRPC over HTTP/2');
      expect(peer.sink.closed).toBe('ended');
      expect(peer.events).toEqual(['broken: the peer sent an HTTP/1 request (not greeted)']);
    });
  }

  const garbage = [
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', // a TLS ClientHello
    'PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n',
    'GET\r\n',
    'GE/T / HTTP/1.1',
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ / HTTP/1.1',
    '*1\r\n$4\r\nPING\r\n',
    '\0',
  ];
  for (const bytes of garbage) {
    protocolTest(
      `bytes that are neither end the connection without an answer: ${JSON.stringify(bytes)}`,
      (peer) => {
        peer.send(Buffer.from(bytes, 'latin1'));
        expect(peer.sink.written).toEqual([]);
        expect(peer.sink.closed).toBe('ended');
        expect(peer.events).toEqual([
          'broken: the peer did not send the HTTP/2 connection preface (not greeted)',
        ]);
      },
    );
  }

  test('a method without more bytes is not rejected yet', () => {
    for (const cut of CHUNK_SPLITS) {
      const peer = new H2Peer({}, cut);
      peer.send(Buffer.from('GET h'));
      expect(peer.events).toEqual([]);
    }
  });
});
