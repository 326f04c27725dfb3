import { describe, expect, test } from '@jest/globals';
import { MAX_ANSWERED_CALLS } from '../../../../src/grpc/h2-transport/answered-calls.js';
import { GrpcPeer } from '../../../support/grpc/grpc-peer.js';

describe('onReset of a unary call', () => {
  test('is called with the answer if the call was reset before', async () => {
    const peer = new GrpcPeer().call(1, 'later');
    peer.reset(1);
    expect(peer.resets).toEqual([]);
    await peer.answer(1);
    expect(peer.resets).toEqual([1]);
  });

  test.each(['now', 'later'] as const)(
    'is called once if the call is reset after its answer (%s)',
    async (kind) => {
      const peer = new GrpcPeer().call(1, kind).call(3, kind);
      await peer.answer(1);
      await peer.answer(3);
      expect(peer.connection.openStreams).toBe(0);
      for (const id of [3, 3, 1]) peer.reset(id);
      expect(peer.resets).toEqual([3, 1]);
    },
  );

  test('is called if the answer still waits for the flow control window', async () => {
    const peer = new GrpcPeer(0).call(1, 'later').call(3, 'now');
    await peer.answer(1);
    expect(peer.connection.openStreams).toBe(2);
    for (const id of [1, 1, 3]) peer.reset(id);
    expect(peer.resets).toEqual([1, 3]);
  });

  test('is called after an answer that waited for the flow control window', async () => {
    const peer = new GrpcPeer(0).call(1, 'now');
    peer.openWindow(1);
    expect(peer.connection.openStreams).toBe(0);
    peer.reset(1);
    expect(peer.resets).toEqual([1]);
  });

  test('is called with the answer if the deadline has passed', async () => {
    const peer = new GrpcPeer().call(1, 'later', 'grpc-timeout: 20m');
    peer.timers.advance(21);
    await peer.answer(1);
    expect(peer.resets).toEqual([1]);
    peer.reset(1);
    expect(peer.resets).toEqual([1]);
  });

  test('is not called for calls that do not set it, nor by resets of other streams', async () => {
    const peer = new GrpcPeer().call(1, 'later').call(3, 'later').call(5, 'now');
    await peer.answer(1, false);
    peer.reset(1);
    peer.reset(3);
    await peer.answer(3, false);
    expect(peer.resets).toEqual([]);
  });

  test('is called for the latest calls of a connection only, however many there were', () => {
    const peer = new GrpcPeer();
    const ids = Array.from({ length: MAX_ANSWERED_CALLS + 2 }, (_, index) => 2 * index + 1);
    for (const id of ids) peer.call(id, 'now');
    for (const id of ids) peer.reset(id);
    expect(peer.resets).toEqual(ids.slice(2));
  });

  test('is called for a blocked answer, however many calls were answered since', () => {
    const peer = new GrpcPeer(0).call(1, 'now');
    for (let id = 3; id <= 2 * MAX_ANSWERED_CALLS + 3; id += 2) {
      peer.call(id, 'now');
      peer.openWindow(id);
    }
    peer.reset(1);
    expect(peer.resets).toEqual([1]);
  });
});

describe('the end of a connection', () => {
  test('calls onReset of calls without a complete answer, and not of answered calls', async () => {
    const peer = new GrpcPeer(0).call(1, 'now').call(3, 'now').call(5, 'later');
    peer.openWindow(1);
    peer.connection.resetStreams();
    expect(peer.resets).toEqual([3]);
    await peer.answer(5);
    expect(peer.resets).toEqual([3, 5]);
  });

  test('by a reset of a stream that was never opened has the same effect', async () => {
    const peer = new GrpcPeer().call(1, 'now').call(3, 'later');
    peer.reset(5);
    await peer.answer(3);
    expect(peer.resets).toEqual([3]);
  });
});
