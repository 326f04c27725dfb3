import { describe, expect } from '@jest/globals';
import {
  answer,
  answerLines,
  block,
  data,
  END_HEADERS,
  END_STREAM,
  frame,
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
