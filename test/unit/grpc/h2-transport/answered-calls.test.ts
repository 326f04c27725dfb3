import { describe, expect, test } from '@jest/globals';
import { MAX_ANSWERED_CALLS } from '../../../../src/grpc/h2-transport/grpc-server-state.js';
import { GrpcPeer } from '../../../support/grpc/grpc-peer.js';

describe('onReset of the listener of a unary call', () => {
  test('is called with the answer if the deadline has passed', async () => {
    const peer = new GrpcPeer().call(1, 'later', 'grpc-timeout: 20m');
    peer.timers.advance(21);
    await peer.answer(1);
    expect(peer.resets).toEqual([1]);
    peer.reset(1);
    expect(peer.resets).toEqual([1]);
  });

  test('is called for the latest calls of a connection only, however many there were', () => {
    const peer = new GrpcPeer();
    const ids = Array.from({ length: MAX_ANSWERED_CALLS + 2 }, (_, index) => 2 * index + 1);
    for (const id of ids) peer.call(id, 'now');
    expect(peer.forgotten).toEqual(ids.slice(0, 2));
    for (const id of ids) peer.reset(id);
    expect(peer.resets).toEqual(ids.slice(2));
    expect(peer.forgotten).toHaveLength(2);
  });

  test('is called for a blocked answer, however many calls were answered since', () => {
    const peer = new GrpcPeer(0).call(1, 'now');
    for (let id = 3; id <= 2 * MAX_ANSWERED_CALLS + 3; id += 2) {
      peer.call(id, 'now');
      peer.openWindow(id);
    }
    expect(peer.forgotten).toEqual([]);
    peer.reset(1);
    expect(peer.resets).toEqual([1]);
  });
});

describe('the end of a connection', () => {
  test('by a reset of a stream that was never opened has the same effect', async () => {
    const peer = new GrpcPeer().call(1, 'now').call(3, 'later');
    peer.reset(5);
    await peer.answer(3);
    expect(peer.resets).toEqual([3]);
  });
});
