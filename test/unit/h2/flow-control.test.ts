import { describe, expect } from '@jest/globals';
import { bytesBody } from '../../support/h2/bytes-body.js';
import {
  answer,
  answerLines,
  data,
  END_STREAM,
  frame,
  OK_HEADERS,
  OK_TRAILERS,
  ping,
  protocolTest,
  request,
  rst,
  settings,
  TYPE,
  windowUpdate,
} from '../../support/h2/h2-peer.js';

const INITIAL_WINDOW_SIZE = 4;

describe('sent data', () => {
  protocolTest('waits for a window of 0, octet by octet, trailers last', (peer) => {
    peer.handler.onComplete = (stream) => answer(stream, 'abcd');
    peer.greet([INITIAL_WINDOW_SIZE, 0]).send(request(1, END_STREAM));
    expect(peer.received()).toEqual(answerLines(1, '').slice(0, 1));
    expect(peer.handler.streams.get(1)?.queuedBytes).toBe(4);
    peer.send(windowUpdate(1, 1), windowUpdate(1, 2));
    expect(peer.received()).toEqual(['DATA 1 "a"', 'DATA 1 "bc"']);
    expect(peer.connection.openStreams).toBe(1);
    peer.send(windowUpdate(1, 9));
    expect(peer.received()).toEqual(['DATA 1 "d"', 'HEADERS 1 grpc-status=0 end']);
    expect(peer.connection.openStreams).toBe(0);
  });

  protocolTest('without trailers ends with its last DATA', (peer) => {
    peer.handler.onComplete = (stream) => stream.sendResponse(OK_HEADERS, bytesBody(Buffer.from('abcd')), []);
    peer.greet([INITIAL_WINDOW_SIZE, 3]).send(request(1, END_STREAM));
    peer.send(windowUpdate(1, 9));
    expect(peer.received().slice(1)).toEqual(['DATA 1 "abc"', 'DATA 1 "d" end']);
    peer.send(request(3, END_STREAM));
    expect(peer.received().slice(1)).toEqual(['DATA 3 "abc"']);
  });

  protocolTest('a larger INITIAL_WINDOW_SIZE lets go what waits', (peer) => {
    peer.handler.onComplete = (stream) => answer(stream, 'abcd');
    peer.greet([INITIAL_WINDOW_SIZE, 0]).send(request(1, END_STREAM), request(3, END_STREAM));
    peer.received();
    peer.send(settings([INITIAL_WINDOW_SIZE, 4]));
    expect(peer.received()).toEqual([
      'SETTINGS ack',
      'DATA 1 "abcd"',
      'HEADERS 1 grpc-status=0 end',
      'DATA 3 "abcd"',
      'HEADERS 3 grpc-status=0 end',
    ]);
  });

  protocolTest('an INITIAL_WINDOW_SIZE that overflows a window ends the connection', (peer) => {
    peer
      .greet()
      .send(request(1), windowUpdate(1, 0x7fff_ffff - 65_535), settings([INITIAL_WINDOW_SIZE, 65_536]));
    expect(peer.received().at(-1)).toBe('GOAWAY 1 FLOW_CONTROL_ERROR');
  });

  protocolTest('streams share the window of the connection, first come first served', (peer) => {
    peer.handler.onComplete = (stream) => answer(stream, stream.id === 1 ? 'x'.repeat(65_533) : 'abcd');
    peer.greet([INITIAL_WINDOW_SIZE, 1_000_000]);
    peer.send(request(1, END_STREAM), request(3, END_STREAM), request(5, END_STREAM));
    expect(peer.received().filter((line) => line.endsWith('"ab"'))).toEqual(['DATA 3 "ab"']);
    peer.send(windowUpdate(0, 3));
    expect(peer.received()).toEqual(['DATA 3 "cd"', 'HEADERS 3 grpc-status=0 end', 'DATA 5 "a"']);
    peer.send(windowUpdate(0, 3));
    expect(peer.received()).toEqual(['DATA 5 "bcd"', 'HEADERS 5 grpc-status=0 end']);
    expect(peer.connection.openStreams).toBe(0);
  });

  protocolTest('a stream that was reset while it waited for the connection gives way', (peer) => {
    peer.handler.onComplete = (stream) => answer(stream, stream.id === 1 ? 'x'.repeat(65_535) : 'ab');
    peer.greet([INITIAL_WINDOW_SIZE, 1_000_000]);
    peer.send(request(1, END_STREAM), request(3, END_STREAM), request(5, END_STREAM), rst(3, 8));
    peer.received();
    peer.send(windowUpdate(0, 2));
    expect(peer.received()).toEqual(['DATA 5 "ab"', 'HEADERS 5 grpc-status=0 end']);
    expect(peer.handler.take()).toContain('reset 3 CANCEL');
  });

  protocolTest(
    'pieces of a streamed response keep their order, and the handler hears when all are sent',
    (peer) => {
      peer.handler.onComplete = (stream) => {
        stream.sendHeaders(OK_HEADERS, false);
        for (const piece of ['ab', '', 'cd', 'e']) stream.sendData(Buffer.from(piece), false);
      };
      peer.greet([INITIAL_WINDOW_SIZE, 1]).send(request(1, END_STREAM));
      expect(peer.received().slice(1)).toEqual(['DATA 1 "a"']);
      peer.send(windowUpdate(1, 2));
      expect(peer.received()).toEqual(['DATA 1 "b"', 'DATA 1 "c"']);
      expect(peer.handler.take()).toEqual(['request 1 POST /call end']);
      peer.send(windowUpdate(1, 20));
      expect(peer.received()).toEqual(['DATA 1 "d"', 'DATA 1 "e"']);
      expect(peer.handler.take()).toEqual(['drained 1']);
      const stream = peer.handler.streams.get(1)!;
      stream.sendTrailers(OK_TRAILERS);
      expect(peer.flush()).toBe(true);
      expect(peer.received()).toEqual(['HEADERS 1 grpc-status=0 end']);
    },
  );

  protocolTest('a handler may send more when all is sent', (peer) => {
    peer.handler.onComplete = (stream) => {
      stream.sendHeaders(OK_HEADERS, false);
      stream.sendData(Buffer.from('ab'), false);
    };
    let rounds = 0;
    peer.handler.onEmpty = (stream) => stream.sendData(Buffer.from('cd'), rounds++ === 1);
    peer.greet([INITIAL_WINDOW_SIZE, 1]).send(request(1, END_STREAM));
    peer.received();
    peer.send(windowUpdate(1, 2), windowUpdate(1, 2));
    expect(peer.received()).toEqual(['DATA 1 "b"', 'DATA 1 "c"', 'DATA 1 "d"', 'DATA 1 "c"']);
    peer.send(windowUpdate(1, 1));
    expect(peer.received()).toEqual(['DATA 1 "d" end']);
  });

  protocolTest('an empty end of a stream needs no window', (peer) => {
    peer.handler.onComplete = (stream) => {
      stream.sendHeaders(OK_HEADERS, false);
      stream.sendData(Buffer.alloc(0), true);
    };
    peer.greet([INITIAL_WINDOW_SIZE, 0]).send(request(1, END_STREAM));
    expect(peer.received().slice(1)).toEqual(['DATA 1 "" end']);
  });

  protocolTest('an empty end after data that waits goes with the last octet', (peer) => {
    peer.handler.onComplete = (stream) => {
      stream.sendHeaders(OK_HEADERS, false);
      stream.sendData(Buffer.from('a'), false);
      stream.sendData(Buffer.alloc(0), true);
    };
    peer.greet([INITIAL_WINDOW_SIZE, 0]).send(request(1, END_STREAM), windowUpdate(1, 1));
    expect(peer.received().slice(1)).toEqual(['DATA 1 "a" end']);
  });
});

describe('received data', () => {
  protocolTest('beyond the window of a stream resets it', (peer) => {
    peer.greet().send(request(1), request(3), ...Array.from({ length: 4 }, () => data(1, 16_384)), ping());
    expect(peer.received()).toEqual(['RST_STREAM 1 FLOW_CONTROL_ERROR', 'PING 01234567 ack']);
    expect(peer.connection.openStreams).toBe(1);
    expect(peer.connection.unconsumedBytes).toBe(0);
  });

  protocolTest(
    'beyond the window of the connection ends it',
    (peer) => {
      peer.greet().send(...[1, 3, 5, 7, 9].flatMap((id) => [request(id), data(id, 16_384)]));
      expect(peer.received()).toEqual(['GOAWAY 7 FLOW_CONTROL_ERROR']);
    },
    { connectionWindowBytes: 65_535 },
  );

  protocolTest('is given back in batches of half a window once the handler has consumed it', (peer) => {
    peer.handler.onBody = (stream, bytes) => stream.consumed(bytes);
    peer.greet().send(request(1), data(1, 16_384), data(1, 16_383));
    expect(peer.received()).toEqual([]);
    peer.send(data(1, 1));
    expect(peer.received()).toEqual(['WINDOW_UPDATE 1 32768']);
    for (let count = 0; count < 30; count++) peer.send(data(1, 16_384));
    expect(peer.received().filter((line) => line === 'WINDOW_UPDATE 524288')).toHaveLength(1);
  });

  protocolTest('is not given back before it is consumed, nor twice', (peer) => {
    peer.greet().send(request(1), data(1, 16_384), data(1, 16_384), data(1, 16_384));
    expect(peer.connection.unconsumedBytes).toBe(49_152);
    const stream = peer.handler.streams.get(1)!;
    stream.consumed(40_000);
    stream.consumed(1_000_000);
    expect(peer.flush()).toBe(true);
    expect(peer.received()).toEqual(['WINDOW_UPDATE 1 40000']);
    expect(peer.connection.unconsumedBytes).toBe(0);
  });

  protocolTest(
    'on a stream that has ended is given back to the connection only',
    (peer) => {
      peer.handler.onComplete = (stream) => answer(stream);
      peer.greet();
      for (let id = 1; id < 9; id += 2)
        peer.send(request(id), data(id, 16_384), data(id, 16_384, END_STREAM));
      expect(peer.received().filter((line) => line.startsWith('WINDOW_UPDATE'))).toEqual([
        'WINDOW_UPDATE 131072',
      ]);
    },
    { connectionWindowBytes: 262_144 },
  );

  protocolTest(
    'padding counts, and is given back at once',
    (peer) => {
      peer.greet();
      const padded = frame(TYPE.DATA, 8, 1, Buffer.concat([Buffer.of(255, 1), Buffer.alloc(255)]));
      peer.send(request(1), padded, padded, padded);
      expect(peer.received()).toEqual(['WINDOW_UPDATE 1 512']);
      expect(peer.connection.unconsumedBytes).toBe(3);
    },
    { streamWindowBytes: 1000 },
  );

  protocolTest(
    'on a stream we have reset counts for the connection, and is given back',
    (peer) => {
      peer.handler.onHead = (stream) => stream.reset(8);
      peer.greet().send(request(1), data(1, 16_384), data(1, 16_384));
      expect(peer.received()).toEqual(['RST_STREAM 1 CANCEL', 'WINDOW_UPDATE 32768']);
    },
    { connectionWindowBytes: 65_535 },
  );

  protocolTest(
    'and was not consumed is given back to the connection when its stream is over',
    (peer) => {
      peer.greet().send(request(1), data(1, 16_384), data(1, 16_384), rst(1, 8));
      expect(peer.received()).toEqual(['WINDOW_UPDATE 32768']);
    },
    { connectionWindowBytes: 65_535 },
  );
});
