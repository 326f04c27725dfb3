import { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { type GenericCall, type GenericHandler, OpenStreams } from '../../../src/grpc/generic-method.js';
import { type ByteStream, GrpcJsCall } from '../../../src/grpc/grpc-js-call.js';

/** Tests calls of the plain stack. The contract suite runs on the fast stack only. */
describe('GrpcJsCall', () => {
  let errors: unknown[];
  let openStreams: OpenStreams;
  beforeEach(() => {
    errors = [];
    openStreams = new OpenStreams();
  });

  /** Starts a call of `begin`. Its peer sends `questions` messages, and reads only while `deaf` is false. */
  function start(begin: (call: GenericCall) => GenericHandler, questions = 0) {
    const peer = { deaf: true, asked: 0, unread: [] as (() => void)[], ends: [] as unknown[] };
    const stream = new Duplex({
      objectMode: true,
      read() {
        this.push(peer.asked < questions ? Buffer.of(++peer.asked & 0xff) : null);
      },
      write(_message, _encoding, done) {
        if (peer.deaf) peer.unread.push(done);
        else done();
      },
    });
    stream.on('error', (error) => {
      peer.ends.push(error);
      stream.end();
    });
    const method = { path: '/t.T/Talk', requestStream: true, responseStream: true, begin };
    const call = new GrpcJsCall(stream as unknown as ByteStream, method, openStreams, (error) =>
      errors.push(error),
    );
    call.start();
    return { stream, peer, call };
  }

  test('does not send the errors of a handler to the client', async () => {
    const error = new Error('secret');
    const fail = (): never => {
      throw error;
    };
    const internal = [expect.objectContaining({ code: 13, details: 'internal error' })];
    expect(start(fail).peer.ends).toEqual(internal);
    const { stream, peer } = start(() => ({ onMessage: fail, onClosed: fail }), 2);
    for (let turn = 0; turn < 5; turn++) await setImmediate();
    expect(peer.ends).toEqual(internal);
    stream.emit('cancelled', 'cancelled');
    expect(peer.ends).toEqual(internal);
    expect(errors).toEqual([error, error, error]);
  });

  test('ends open and later streams, but not finished ones', () => {
    const begin = () => ({ onMessage: () => {} });
    const [open, over] = [start(begin), start(begin)];
    over.stream.emit('cancelled', 'cancelled');
    openStreams.end();
    const late = start(begin);
    const unavailable = [expect.objectContaining({ code: 14, details: 'the server is shutting down' })];
    expect([open, over, late].map(({ peer }) => peer.ends)).toEqual([unavailable, [], unavailable]);
  });

  test('ends a stream with unread answers', () => {
    const { call, peer, stream } = start(() => ({ onMessage: () => {} }));
    const sent = Array.from({ length: 5000 }, () => call.send(Buffer.of(1)));
    expect([sent[0], sent.at(-1)]).toEqual([true, false]);
    expect(peer.ends).toEqual([
      expect.objectContaining({ code: 8, details: 'the caller does not read the responses' }),
    ]);
    expect(stream.writableLength).toBe(1000);
  });

  test('reads no further message while answers wait, and continues after they are read', async () => {
    const answered: Buffer[] = [];
    const { stream, peer } = start(
      (call) => ({
        onMessage(question) {
          answered.push(question);
          call.send(question);
        },
      }),
      500,
    );
    for (let turn = 0; turn < 20; turn++) await setImmediate();
    expect(answered.length).toBeLessThanOrEqual(stream.writableHighWaterMark + 1);
    expect(peer.asked).toBeLessThan(100);
    peer.deaf = false;
    const ended = new Promise((resolve) => stream.on('end', resolve));
    for (const done of peer.unread) done();
    await ended;
    expect(answered).toHaveLength(500);
  });
});
