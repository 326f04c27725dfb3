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
  OK_HEADERS,
  ping,
  protocolTest,
  REQUEST,
  request,
  rst,
  TYPE,
} from '../../support/h2/h2-peer.js';

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
