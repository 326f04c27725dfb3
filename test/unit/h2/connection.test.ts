import { describe, expect } from '@jest/globals';
import { DEFAULT_LIMITS } from '../../../src/h2/limits.js';
import {
  answer,
  answerLines,
  data,
  END_STREAM,
  PREFACE,
  ping,
  protocolTest,
  request,
  rst,
  settings,
} from '../../support/h2/h2-peer.js';

describe('a connection', () => {
  protocolTest('begins with our SETTINGS, a larger window, and the acknowledgement of theirs', (peer) => {
    peer.send(PREFACE, settings());
    expect(peer.received()).toEqual([
      'SETTINGS 1=4096 3=1024 4=65535 5=16384 6=16384',
      `WINDOW_UPDATE ${DEFAULT_LIMITS.connectionWindowBytes - 65_535}`,
      'SETTINGS ack',
    ]);
    expect(peer.events).toEqual(['greeted']);
  });

  protocolTest('serves a request with a body', (peer) => {
    peer.handler.onComplete = (stream) => answer(stream);
    peer.greet().send(request(1), data(1, 'hello', END_STREAM));
    expect(peer.handler.take()).toEqual(['request 1 POST /call', 'data 1 "hello" end']);
    expect(peer.received()).toEqual(answerLines(1, 'ok'));
    expect(peer.connection.openStreams).toBe(0);
  });

  protocolTest('answers a PING with its payload', (peer) => {
    peer.greet().send(ping('abcdefgh'));
    expect(peer.received()).toEqual(['PING abcdefgh ack']);
  });

  protocolTest('tells the handler of a reset', (peer) => {
    peer.greet().send(request(1), rst(1, 8));
    expect(peer.handler.take()).toEqual(['request 1 POST /call', 'reset 1 CANCEL']);
    expect(peer.connection.openStreams).toBe(0);
  });
});
