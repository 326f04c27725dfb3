import { expect, test } from '@jest/globals';
import type { JsonCodec } from '../../../../src/codec/json/json-codec.js';
import { jsonEndpoint } from '../../../../src/server/ports/json-endpoint.js';
import { TurnQueue } from '../../../../src/service/turn-queue.js';

test('a decision is answered even if the queue of turns is full, because it was counted', async () => {
  const codec: JsonCodec = {
    *requestToWire() {
      yield;
      return new Uint8Array(1);
    },
    *responseFromWire() {
      yield;
      return { text: '{"overallCode":"OVER_LIMIT"}', overLimit: true };
    },
  };
  const monotonicMicros = (): number => 0;
  const { answer } = jsonEndpoint({
    codec,
    // Longer than the maximum size that is processed immediately.
    decide: () => new Uint8Array(100_000),
    isOnLoopback: true,
    maxBodyBytes: 1000,
    turns: new TurnQueue({ monotonicMicros, maxJobs: 0 }),
    calls: { ended: () => {}, refused: () => {} },
    monotonicMicros,
  });
  const call = {
    method: 'POST',
    query: new URLSearchParams(),
    peer: '127.0.0.1',
    headers: {},
    connection: {},
    isCancelled: () => false,
  };
  expect(await answer({ ...call, body: [Buffer.from('{}')] })).toMatchObject({
    status: 429,
    body: '{"overallCode":"OVER_LIMIT"}',
  });
});
