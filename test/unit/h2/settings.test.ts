import { describe, expect } from '@jest/globals';
import { HeaderField } from '../../../src/h2/hpack/header-field.js';
import { DEFAULT_LIMITS } from '../../../src/h2/limits.js';
import {
  answer,
  answerLines,
  END_STREAM,
  frame,
  PREFACE,
  protocolTest,
  request,
  settings,
  TYPE,
} from '../../support/h2/h2-peer.js';

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
