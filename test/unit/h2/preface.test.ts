import { describe, expect, test } from '@jest/globals';
import {
  ACK,
  CHUNK_SPLITS,
  frame,
  H2Peer,
  PREFACE,
  ping,
  protocolTest,
  settings,
  TYPE,
} from '../../support/h2/h2-peer.js';

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
