import { describe, expect, test } from '@jest/globals';
import {
  ACK,
  answer,
  answerLines,
  block,
  data,
  END_HEADERS,
  END_STREAM,
  frame,
  H2Peer,
  headers,
  OK_HEADERS,
  ping,
  protocolTest,
  REQUEST,
  request,
  rst,
  TYPE,
  windowUpdate,
  words,
} from '../../support/h2/h2-peer.js';

const PONG = 'PING 01234567 ack';

describe('stream identifiers', () => {
  protocolTest('a lower identifier than the last is a closed stream', (peer) => {
    peer.greet().send(request(5), request(3));
    expect(peer.received()).toEqual(['GOAWAY 5 STREAM_CLOSED']);
  });

  protocolTest('identifiers may be left out', (peer) => {
    peer.greet().send(request(1), request(101));
    expect(peer.connection.openStreams).toBe(2);
  });
});

describe('requests', () => {
  protocolTest('end with HEADERS, with DATA, with empty DATA, or with trailers', (peer) => {
    peer
      .greet()
      .send(
        request(1, END_STREAM),
        request(3),
        data(3, 'a'),
        data(3, 'b', END_STREAM),
        request(5),
        data(5, '', END_STREAM),
        request(7),
        data(7, 'c'),
        headers(7, END_STREAM, 'checksum: 1'),
      );
    expect(peer.handler.take()).toEqual([
      'request 1 POST /call end',
      'request 3 POST /call',
      'data 3 "a"',
      'data 3 "b" end',
      'request 5 POST /call',
      'data 5 "" end',
      'request 7 POST /call',
      'data 7 "c"',
      'trailers 7',
    ]);
  });

  protocolTest('that come all HEADERS before all DATA are answered in order', (peer) => {
    peer.handler.onComplete = (stream) => answer(stream, `to ${stream.id}`);
    peer
      .greet()
      .send(...[1, 3, 5].map((id) => request(id)), ...[1, 3, 5].map((id) => data(id, 'x', END_STREAM)));
    expect(peer.received()).toEqual([1, 3, 5].flatMap((id) => answerLines(id, `to ${id}`)));
  });

  protocolTest('a header block may be cut into CONTINUATION frames, empty ones too', (peer) => {
    const fields = block(...REQUEST);
    peer
      .greet()
      .send(
        frame(TYPE.HEADERS, END_STREAM, 1, fields.subarray(0, 7)),
        frame(TYPE.CONTINUATION, 0, 1, fields.subarray(7, 8)),
        frame(TYPE.CONTINUATION, 0, 1),
        frame(TYPE.CONTINUATION, END_HEADERS, 1, fields.subarray(8)),
        ping(),
      );
    expect(peer.handler.take()).toEqual(['request 1 POST /call end']);
    expect(peer.received()).toEqual([PONG]);
  });
});

describe('a stream whose request has ended', () => {
  for (const [name, bytes] of [
    ['DATA', data(1, 'x')],
    ['HEADERS', headers(1, END_STREAM, 'a: b')],
  ] as const) {
    protocolTest(`${name} reset it with STREAM_CLOSED`, (peer) => {
      peer.greet().send(request(1, END_STREAM), bytes, ping());
      expect(peer.received()).toEqual(['RST_STREAM 1 STREAM_CLOSED', PONG]);
      expect(peer.handler.take()).toEqual(['request 1 POST /call end', 'reset 1 STREAM_CLOSED']);
    });
  }
});

describe('a stream that both sides have ended', () => {
  protocolTest('DATA get STREAM_CLOSED', (peer) => {
    peer.handler.onComplete = (stream) => answer(stream);
    peer.greet().send(request(1, END_STREAM), data(1, 'x'), ping());
    expect(peer.received().slice(3)).toEqual(['RST_STREAM 1 STREAM_CLOSED', PONG]);
  });

  protocolTest('WINDOW_UPDATE, PRIORITY and RST_STREAM are ignored', (peer) => {
    peer.handler.onComplete = (stream) => answer(stream);
    peer
      .greet()
      .send(
        request(1, END_STREAM),
        windowUpdate(1, 5),
        windowUpdate(1, 0x7fff_ffff),
        frame(TYPE.PRIORITY, 0, 1, Buffer.alloc(5)),
        rst(1, 8),
        ping(),
      );
    expect(peer.received().slice(3)).toEqual([PONG]);
    expect(peer.handler.take()).toEqual(['request 1 POST /call end']);
  });
});

describe('a stream that the peer has reset', () => {
  for (const [name, bytes] of [
    ['DATA', data(1, 'x')],
    ['HEADERS', headers(1, END_STREAM, 'a: b')],
  ] as const) {
    protocolTest(`${name} get STREAM_CLOSED`, (peer) => {
      peer.greet().send(request(1), rst(1, 8), bytes, ping());
      expect(peer.received()).toEqual(['RST_STREAM 1 STREAM_CLOSED', PONG]);
    });
  }

  protocolTest('the handler cannot answer it any more', (peer) => {
    peer.greet().send(request(1), rst(1, 8));
    const stream = peer.handler.streams.get(1)!;
    answer(stream);
    stream.sendHeaders(OK_HEADERS, true);
    stream.sendData(Buffer.from('x'), true);
    stream.sendTrailers([]);
    stream.consumed(5);
    stream.reset(8);
    expect(peer.flush()).toBe(false);
    expect(peer.received()).toEqual([]);
  });
});

describe('a stream that weir has reset', () => {
  protocolTest('what the peer had sent already is ignored, once and again', (peer) => {
    peer.handler.onHead = (stream) => stream.reset(7);
    peer
      .greet()
      .send(
        request(1),
        data(1, 'x'),
        headers(1, END_STREAM, 'a: b'),
        rst(1, 8),
        windowUpdate(1, 1),
        data(1, 'y', END_STREAM),
        ping(),
      );
    expect(peer.received()).toEqual(['RST_STREAM 1 REFUSED_STREAM', PONG]);
    expect(peer.handler.take()).toEqual(['request 1 POST /call']);
  });

  protocolTest('its header blocks still enter the table', (peer) => {
    peer.handler.onHead = (stream) => {
      if (stream.id === 1) stream.reset(8);
    };
    // 0x40: a literal that is added to the table. 0xbe: the first entry of the dynamic table (RFC 7541 sections 6.2.1,
    // 6.1).
    const literal = Buffer.concat([Buffer.of(0x40), block('x: y').subarray(1)]);
    peer
      .greet()
      .send(
        request(1),
        frame(TYPE.HEADERS, END_HEADERS | END_STREAM, 1, literal),
        frame(TYPE.HEADERS, END_HEADERS, 3, Buffer.concat([block(...REQUEST), Buffer.of(0xbe)])),
      );
    expect(peer.handler.streams.get(3)?.head.fields).toEqual(['x', 'y']);
  });

  protocolTest(
    'is forgotten after a bounded number of others',
    (peer) => {
      peer.handler.onHead = (stream) => stream.reset(8);
      peer.greet().send(request(1), request(3), request(5), data(1, 'late'), data(5, 'soon'));
      expect(peer.received()).toEqual([
        'RST_STREAM 1 CANCEL',
        'RST_STREAM 3 CANCEL',
        'RST_STREAM 5 CANCEL',
        'RST_STREAM 1 STREAM_CLOSED',
      ]);
    },
    { maxRememberedResets: 2 },
  );
});

describe('a response that ends before its request', () => {
  protocolTest('is followed by RST_STREAM(NO_ERROR), and the rest of the request is ignored', (peer) => {
    peer.handler.onHead = (stream) => answer(stream);
    peer.greet().send(request(1), data(1, 'rest'), data(1, 'end', END_STREAM), ping());
    expect(peer.received()).toEqual([...answerLines(1, 'ok'), 'RST_STREAM 1 NO_ERROR', PONG]);
    expect(peer.handler.take()).toEqual(['request 1 POST /call']);
    expect(peer.connection.unconsumedBytes).toBe(0);
  });
});

describe('content-length', () => {
  for (const [name, frames] of [
    ['more', [request(1, 0, 'content-length: 3'), data(1, 'ab'), data(1, 'cd', END_STREAM)]],
    ['less', [request(1, 0, 'content-length: 3'), data(1, 'ab', END_STREAM)]],
    ['nothing', [request(1, 0, 'content-length: 3'), data(1, '', END_STREAM)]],
    [
      'less before trailers',
      [request(1, 0, 'content-length: 3'), data(1, 'ab'), headers(1, END_STREAM, 'a: b')],
    ],
  ] as const) {
    protocolTest(`${name} than it says resets the stream`, (peer) => {
      peer.greet().send(...frames, ping());
      expect(peer.received()).toEqual(['RST_STREAM 1 PROTOCOL_ERROR', PONG]);
      expect(peer.handler.take().at(-1)).toBe('reset 1 PROTOCOL_ERROR');
      expect(peer.connection.unconsumedBytes).toBe(0);
    });
  }

  protocolTest('without a body resets the stream unless it is 0', (peer) => {
    peer
      .greet()
      .send(request(1, END_STREAM, 'content-length: 3'), request(3, END_STREAM, 'content-length: 0'));
    expect(peer.received()).toEqual(['RST_STREAM 1 PROTOCOL_ERROR']);
    expect(peer.handler.take()).toEqual(['request 3 POST /call end']);
  });

  protocolTest('does not count padding', (peer) => {
    peer
      .greet()
      .send(
        request(1, 0, 'content-length: 3'),
        frame(TYPE.DATA, 8, 1, Buffer.from('\x02ab\0\0', 'latin1')),
        data(1, 'c', END_STREAM),
      );
    expect(peer.received()).toEqual([]);
    expect(peer.handler.take().at(-1)).toBe('data 1 "c" end');
  });
});

describe('RST_STREAM', () => {
  protocolTest('of an unknown code is told as it is', (peer) => {
    let code = -1;
    peer.handler.onReset = (_stream, errorCode) => {
      code = errorCode;
    };
    peer.greet().send(request(1), frame(TYPE.RST_STREAM, 0, 1, words(0xffff_fff0)));
    expect(code).toBe(0xffff_fff0);
  });
});

const READ = ping('weirlast', ACK);

describe('a graceful end', () => {
  protocolTest(
    'ignores later streams, but keeps the header table in step and gives their octets back',
    (peer) => {
      peer.greet().send(request(1));
      peer.connection.closeGracefully();
      peer.flush();
      peer.send(READ);
      peer.received();
      const literal = Buffer.concat([block(...REQUEST), Buffer.of(0x40), block('x: y').subarray(1)]);
      peer.send(
        frame(TYPE.HEADERS, END_HEADERS, 3, literal),
        data(3, 16_384),
        data(3, 16_384, END_STREAM),
        rst(3, 8),
      );
      expect(peer.received()).toEqual(['WINDOW_UPDATE 32768']);
      expect(peer.handler.take()).toEqual(['request 1 POST /call']);
      // The trailers of stream 1 refer to the table entry that the ignored stream has added.
      peer.send(frame(TYPE.HEADERS, END_HEADERS | END_STREAM, 1, Buffer.of(0xbe)));
      expect(peer.handler.take()).toEqual(['trailers 1']);
    },
    { connectionWindowBytes: 65_535 },
  );

  protocolTest('names the last stream it served when the peer breaks the protocol afterwards', (peer) => {
    peer.greet().send(request(1));
    peer.connection.closeGracefully();
    peer.flush();
    peer.send(READ, request(3), data(0, 'x'));
    expect(peer.received().at(-1)).toBe('GOAWAY 1 PROTOCOL_ERROR');
  });
});

describe('an immediate end', () => {
  test('sends pending data, then GOAWAY, and resets open streams', () => {
    const peer = new H2Peer().greet();
    peer.send(request(1), request(3));
    peer.handler.streams.get(1)!.sendHeaders(OK_HEADERS, false);
    peer.connection.terminate(11, 'too old');
    expect(peer.received()).toEqual([
      'HEADERS 1 :status=200 content-type=application/grpc',
      'GOAWAY 3 ENHANCE_YOUR_CALM',
    ]);
    expect(peer.handler.take().slice(2)).toEqual(['reset 1 ENHANCE_YOUR_CALM', 'reset 3 ENHANCE_YOUR_CALM']);
    expect(peer.sink.closed).toBe('ended');
    expect(peer.events).toEqual(['greeted']);
    peer.connection.terminate(11, 'again');
    peer.connection.flush();
    peer.connection.closeGracefully();
    peer.connection.ping();
    peer.connection.resetStreams();
    expect(peer.received()).toEqual([]);
  });

  test('truncates a long debug text', () => {
    const peer = new H2Peer().greet();
    peer.connection.terminate(0, 'x'.repeat(100_000));
    expect(peer.received()).toEqual(['GOAWAY 0 NO_ERROR']);
  });

  test('before the preface sends nothing', () => {
    const peer = new H2Peer();
    peer.connection.terminate(0, '');
    expect(peer.sink.written).toEqual([]);
    expect(peer.sink.closed).toBe('ended');
  });
});

describe('a lost socket', () => {
  test('resets open streams and sends no more data', () => {
    const peer = new H2Peer().greet();
    peer.send(request(1), request(3, END_STREAM));
    peer.handler.take();
    peer.connection.resetStreams();
    peer.connection.resetStreams();
    expect(peer.handler.take()).toEqual(['reset 1 CANCEL', 'reset 3 CANCEL']);
    answer(peer.handler.streams.get(3)!);
    peer.connection.flush();
    peer.send(ping());
    expect(peer.received()).toEqual([]);
    expect(peer.connection.openStreams).toBe(0);
    expect(peer.sink.closed).toBe('no');
  });
});

describe('keep-alive', () => {
  protocolTest('a PING is sent and its answer is told', (peer) => {
    peer.greet();
    peer.connection.ping();
    expect(peer.flush()).toBe(true);
    expect(peer.received()).toEqual(['PING weirping']);
    peer.send(ping('other...', ACK));
    expect(peer.events).toEqual(['greeted']);
    peer.send(ping('weirping', ACK), ping('weirping', ACK));
    expect(peer.events).toEqual(['greeted', 'ack']);
  });

  test('nothing is sent before the preface of the client', () => {
    const peer = new H2Peer();
    peer.connection.ping();
    expect(peer.flush()).toBe(false);
  });
});

describe('the owner', () => {
  test('gets the time of the last received bytes', () => {
    const peer = new H2Peer().greet();
    peer.nowMs = 5000;
    expect(peer.connection.lastReceivedMs).toBe(1000);
    peer.send(ping().subarray(0, 3));
    expect(peer.connection.lastReceivedMs).toBe(5000);
  });

  test('gets the answers of one chunk in one write', () => {
    const peer = new H2Peer().greet();
    peer.handler.onComplete = (stream) => answer(stream);
    peer.send(...Array.from({ length: 100 }, (_none, index) => request(1 + 2 * index, END_STREAM)), ping());
    expect(peer.sink.written).toHaveLength(1);
    expect(peer.received()).toHaveLength(301);
  });

  test('is notified once of answers outside of a chunk, until it flushes', () => {
    const peer = new H2Peer().greet();
    peer.send(request(1, END_STREAM), request(3, END_STREAM), request(5, END_STREAM));
    answer(peer.handler.streams.get(3)!);
    answer(peer.handler.streams.get(1)!);
    expect(peer.sink.written).toHaveLength(0);
    expect(peer.flush()).toBe(true);
    expect(peer.sink.written).toHaveLength(1);
    expect(peer.received()).toEqual([...answerLines(3, 'ok'), ...answerLines(1, 'ok')]);
    // Output that is sent together with the responses to a chunk must not be announced again: the peer of this test
    // would throw.
    peer.handler.streams.get(5)!.reset(8);
    peer.send(request(7));
    peer.handler.streams.get(7)!.sendHeaders(OK_HEADERS, false);
    peer.received();
    peer.handler.streams.get(7)!.reset(8);
    expect(peer.flush()).toBe(true);
    expect(peer.received()).toEqual([
      'HEADERS 7 :status=200 content-type=application/grpc',
      'RST_STREAM 7 CANCEL',
    ]);
  });
});
