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
  PADDED,
  PREFACE,
  ping,
  protocolTest,
  REQUEST,
  request,
  rst,
  settings,
  TYPE,
  windowUpdate,
} from '../../support/h2/h2-peer.js';

function times(count: number, make: (index: number) => Buffer): Buffer[] {
  return Array.from({ length: count }, (_none, index) => make(index));
}

function expectCalm(peer: H2Peer): void {
  expect(peer.received().at(-1)).toMatch(/^GOAWAY \d+ ENHANCE_YOUR_CALM$/);
  expect(peer.sink.closed).toBe('ended');
  expect(peer.events.at(-1)).toMatch(/^broken: the peer /);
  expect(peer.connection.openStreams).toBe(0);
}

function expectServing(peer: H2Peer): void {
  peer.received();
  peer.send(ping());
  expect(peer.received()).toEqual(['PING 01234567 ack']);
}

describe('maxConcurrentStreams', () => {
  protocolTest(
    'one stream more is refused, the others are served, and a free place is taken again',
    (peer) => {
      peer.greet().send(request(1), request(3), request(5), data(5, 'x', END_STREAM));
      expect(peer.received()).toEqual(['RST_STREAM 5 REFUSED_STREAM']);
      peer.handler.onComplete = (stream) => answer(stream);
      peer.send(data(1, '', END_STREAM), request(7, END_STREAM));
      expect(peer.received()).toEqual([...answerLines(1, 'ok'), ...answerLines(7, 'ok')]);
    },
    { maxConcurrentStreams: 2 },
  );

  test('counts streams whose answers wait for a window', () => {
    const peer = new H2Peer({ maxConcurrentStreams: 3 }).greet([4, 0]);
    peer.handler.onComplete = (stream) => answer(stream);
    peer.send(...times(4, (index) => request(1 + 2 * index, END_STREAM)));
    expect(peer.received().at(-1)).toBe('RST_STREAM 7 REFUSED_STREAM');
  });

  test('the number of half-open streams is limited', () => {
    const peer = new H2Peer().greet();
    peer.send(...times(9000, (index) => request(1 + 2 * index)));
    expect(peer.connection.openStreams).toBe(1024);
    expectServing(peer);
    peer.send(...times(4000, (index) => request(20_001 + 2 * index)));
    expectCalm(peer);
  });
});

describe('resetBurst', () => {
  const limits = { resetBurst: 10, resetRefillPerSecond: 2 };

  protocolTest(
    'is refilled as time goes by, up to the burst',
    (peer) => {
      const some = (from: number, count: number) =>
        times(count, (index) => Buffer.concat([request(from + 2 * index), rst(from + 2 * index, 8)]));
      peer.greet().send(...some(1, 10));
      peer.nowMs += 1000;
      peer.send(...some(101, 2));
      expectServing(peer);
      peer.nowMs += 1_000_000;
      peer.send(...some(201, 10));
      expectServing(peer);
      peer.send(...some(301, 1));
      expectCalm(peer);
    },
    limits,
  );

  for (const [name, breach] of [
    ['a WINDOW_UPDATE of 0', (id: number) => windowUpdate(id, 0)],
    ['an overflowing WINDOW_UPDATE', (id: number) => windowUpdate(id, 0x7fff_ffff)],
    ['PRIORITY of a wrong length', (id: number) => frame(TYPE.PRIORITY, 0, id, Buffer.alloc(4))],
    ['DATA after the end', (id: number) => Buffer.concat([data(id, '', END_STREAM), data(id, 'x')])],
    ['a second HEADERS', (id: number) => headers(id, 0, 'a: b')],
  ] as const) {
    protocolTest(
      `resets the peer makes us send count (MadeYouReset by ${name})`,
      (peer) => {
        peer
          .greet()
          .send(...times(11, (index) => Buffer.concat([request(1 + 2 * index), breach(1 + 2 * index)])));
        expectCalm(peer);
      },
      limits,
    );
  }

  protocolTest(
    'malformed requests and refused streams count',
    (peer) => {
      peer.greet().send(...times(11, (index) => headers(1 + 2 * index, END_STREAM, 'X: y')));
      expectCalm(peer);
    },
    limits,
  );

  protocolTest(
    'resets after the answer do not count',
    (peer) => {
      peer.handler.onHead = (stream) => answer(stream);
      peer
        .greet()
        .send(...times(50, (index) => Buffer.concat([request(1 + 2 * index), rst(1 + 2 * index, 8)])));
      expectServing(peer);
    },
    limits,
  );
});

describe('header blocks', () => {
  const limits = { maxHeaderBlockBytes: 1000, maxContinuations: 5, maxHeaderListBytes: 500 };

  protocolTest(
    'a CONTINUATION flood ends the connection before the block is complete',
    (peer) => {
      peer
        .greet()
        .send(
          frame(TYPE.HEADERS, 0, 1),
          ...times(50, () => frame(TYPE.CONTINUATION, 0, 1, Buffer.alloc(100))),
        );
      expectCalm(peer);
    },
    { ...limits, maxContinuations: 1000 },
  );

  protocolTest(
    'a flood of empty CONTINUATION frames ends it too',
    (peer) => {
      peer.greet().send(frame(TYPE.HEADERS, 0, 1), ...times(6, () => frame(TYPE.CONTINUATION, 0, 1)));
      expectCalm(peer);
    },
    limits,
  );

  protocolTest(
    'a block in one frame is bounded as well',
    (peer) => {
      peer.greet().send(request(1, 0, `x: ${'a'.repeat(1000)}`));
      expectCalm(peer);
    },
    limits,
  );

  protocolTest(
    'a list over the limit gets 431, others are served, and the table stays in step',
    (peer) => {
      peer.handler.onComplete = (stream) => answer(stream);
      const literal = Buffer.concat([Buffer.of(0x40), block('x: y').subarray(1)]);
      const large = Buffer.concat([block(...REQUEST, `z: ${'a'.repeat(400)}`), literal]);
      peer
        .greet()
        .send(
          request(1),
          frame(TYPE.HEADERS, END_HEADERS | END_STREAM, 3, large),
          frame(TYPE.HEADERS, END_HEADERS, 5, large),
          data(5, 'x', END_STREAM),
          frame(
            TYPE.HEADERS,
            END_HEADERS | END_STREAM,
            7,
            Buffer.concat([block(...REQUEST), Buffer.of(0xbe)]),
          ),
          data(1, 'x', END_STREAM),
        );
      expect(peer.received()).toEqual([
        'HEADERS 3 :status=431 end',
        'HEADERS 5 :status=431 end',
        'RST_STREAM 5 NO_ERROR',
        ...answerLines(7, 'ok'),
        ...answerLines(1, 'ok'),
      ]);
      expect(peer.handler.streams.get(7)?.head.fields).toEqual(['x', 'y']);
    },
    limits,
  );

  protocolTest(
    'trailers over the limit reset their stream',
    (peer) => {
      peer.greet().send(request(1), headers(1, END_STREAM, `z: ${'a'.repeat(600)}`));
      expect(peer.received()).toEqual(['RST_STREAM 1 ENHANCE_YOUR_CALM']);
    },
    limits,
  );

  test('an HPACK bomb costs its sender a 431: a long entry named again and again', () => {
    const peer = new H2Peer().greet();
    const entry = Buffer.concat([Buffer.of(0x40), block(`x: ${'a'.repeat(4000)}`).subarray(1)]);
    peer.send(frame(TYPE.HEADERS, END_HEADERS | END_STREAM, 1, Buffer.concat([block(...REQUEST), entry])));
    const bomb = Buffer.concat([block(...REQUEST), Buffer.alloc(16_000, 0xbe)]);
    peer.send(frame(TYPE.HEADERS, END_HEADERS | END_STREAM, 3, bomb));
    expect(peer.received()).toEqual(['HEADERS 3 :status=431 end']);
    expect(peer.handler.take()).toEqual(['request 1 POST /call end']);
  });
});

describe('controlBurst', () => {
  const limits = { controlBurst: 20, controlRefillPerSecond: 10 };

  for (const [name, make] of [
    ['SETTINGS', () => settings([4, 65_535])],
    ['acknowledgements of SETTINGS', () => frame(TYPE.SETTINGS, ACK, 0)],
    ['PING', () => ping()],
    ['answers to PING', () => ping('weirping', ACK)],
    ['PRIORITY', () => frame(TYPE.PRIORITY, 0, 1, Buffer.alloc(5))],
    ['WINDOW_UPDATE of the connection', () => windowUpdate(0, 1)],
    ['WINDOW_UPDATE of a stream', () => windowUpdate(1, 1)],
    ['empty DATA', () => data(1, '')],
    ['DATA of padding only', () => frame(TYPE.DATA, PADDED, 1, Buffer.of(1, 0))],
    ['frames of unknown types', () => frame(200, 0, 0)],
    ['GOAWAY', () => frame(TYPE.GOAWAY, 0, 0, Buffer.alloc(8))],
  ] as const) {
    protocolTest(
      `a flood of ${name} ends the connection`,
      (peer) => {
        peer.greet().send(request(1), ...times(21, make));
        expectCalm(peer);
      },
      limits,
    );
  }

  for (const [name, make] of [
    ['RST_STREAM', () => rst(1, 8)],
    ['empty DATA', () => data(1, '')],
    ['HEADERS', () => headers(1, END_STREAM, 'a: b')],
  ] as const) {
    protocolTest(
      `a flood of ${name} on a stream we have reset ends it`,
      (peer) => {
        peer.handler.onHead = (stream) => stream.reset(8);
        peer.greet().send(request(1), ...times(21, make));
        expectCalm(peer);
      },
      limits,
    );
  }

  protocolTest(
    'a window opened octet by octet does not earn what it takes (silly windows)',
    (peer) => {
      peer.handler.onComplete = (stream) => answer(stream, 'x'.repeat(1000));
      peer.greet([4, 0]).send(request(1, END_STREAM), ...times(40, () => windowUpdate(1, 1)));
      expectCalm(peer);
    },
    limits,
  );

  protocolTest(
    'messages of ours earn control frames',
    (peer) => {
      peer.greet().send(request(1, END_STREAM));
      const stream = peer.handler.streams.get(1)!;
      stream.sendHeaders(OK_HEADERS, false);
      for (let count = 0; count < 50; count++) {
        stream.sendData(Buffer.from('x'), false);
        peer.flush();
        peer.send(windowUpdate(1, 1), windowUpdate(0, 1));
      }
      expectServing(peer);
    },
    limits,
  );

  protocolTest(
    'requests earn control frames',
    (peer) => {
      peer.handler.onComplete = (stream) => answer(stream);
      peer.greet();
      peer.send(
        ...times(50, (index) =>
          Buffer.concat([request(1 + 2 * index, END_STREAM), ping(), windowUpdate(0, 9)]),
        ),
      );
      expectServing(peer);
    },
    limits,
  );

  protocolTest(
    'requests that are answered before their end earn them too',
    (peer) => {
      peer.handler.onHead = (stream) => answer(stream);
      peer.greet();
      peer.send(
        ...times(50, (index) =>
          Buffer.concat([request(1 + 2 * index), data(1 + 2 * index, ''), rst(1 + 2 * index, 8)]),
        ),
      );
      expectServing(peer);
    },
    limits,
  );

  protocolTest(
    'time earns control frames',
    (peer) => {
      peer.greet();
      for (let second = 0; second < 20; second++) {
        peer.nowMs += 1000;
        peer.send(...times(10, () => ping()));
      }
      expectServing(peer);
    },
    limits,
  );
});

describe('maxOutputBytes', () => {
  const limits = { maxOutputBytes: 1000 };

  test('answers that wait for windows of 0 end the connection', () => {
    const peer = new H2Peer(limits).greet([4, 0]);
    peer.handler.onComplete = (stream) => answer(stream, 'x'.repeat(300));
    peer.send(...times(3, (index) => request(1 + 2 * index, END_STREAM)));
    expect(peer.connection.openStreams).toBe(3);
    peer.send(request(7, END_STREAM));
    expect(peer.sink.closed).toBe('destroyed');
    expect(peer.events.at(-1)).toBe('broken: the peer does not read the responses');
    expect(peer.handler.take().slice(4)).toEqual([1, 3, 5, 7].map((id) => `reset ${id} ENHANCE_YOUR_CALM`));
  });

  test('answers that the socket does not accept, and answers to PING, also end the connection', () => {
    for (const bytes of [request(1, END_STREAM), ping()]) {
      const peer = new H2Peer(limits).greet();
      peer.handler.onComplete = (stream) => answer(stream, 'x'.repeat(300));
      peer.sink.keepsUp = false;
      for (let count = 0; count < 100 && peer.sink.closed === 'no'; count++) {
        if (bytes.readUInt8(3) === TYPE.HEADERS) bytes.writeUInt32BE(1 + 2 * count, 5);
        peer.send(Buffer.from(bytes));
      }
      expect(peer.sink.closed).toBe('destroyed');
      expect(peer.sink.bufferedBytes).toBeLessThan(1500);
    }
  });

  test('an answer that goes over it outside of a chunk resets streams at the flush, not inside the handler', () => {
    const peer = new H2Peer(limits).greet([4, 0]);
    peer.send(request(1, END_STREAM));
    const stream = peer.handler.streams.get(1)!;
    stream.sendHeaders(OK_HEADERS, false);
    stream.sendData(Buffer.alloc(2000), false);
    expect(peer.handler.log).toHaveLength(1);
    peer.flush();
    expect(peer.handler.log.at(-1)).toBe('reset 1 ENHANCE_YOUR_CALM');
    expect(peer.sink.closed).toBe('destroyed');
  });

  test('data that was read or reset no longer counts', () => {
    const peer = new H2Peer(limits).greet([4, 0]);
    peer.handler.onComplete = (stream) => answer(stream, 'x'.repeat(300));
    for (let id = 1; id < 40; id += 4) {
      peer.send(request(id, END_STREAM), request(id + 2, END_STREAM), rst(id, 8), windowUpdate(id + 2, 300));
    }
    expectServing(peer);
  });
});

describe('buffered bytes', () => {
  test('an incomplete frame uses memory only for received bytes', () => {
    const peer = new H2Peer().greet();
    const large = data(1, 16_384);
    peer.send(request(1), large.subarray(0, 5000));
    expect(peer.handler.take()).toEqual(['request 1 POST /call']);
    peer.send(large.subarray(5000), ping());
    expect(peer.handler.take()).toEqual(['data 1 16384 bytes']);
  });

  test('a connection with only a preface uses no memory', () => {
    const peer = new H2Peer();
    peer.send(PREFACE.subarray(0, 10));
    expect(peer.events).toEqual([]);
  });
});
