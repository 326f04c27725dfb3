import { expect, test } from '@jest/globals';
import { CODE, DEFAULT_BOUNDS, type RateLimitResponse } from '../../../../src/codec/messages.js';
import { type Decide, jsonEndpoint } from '../../../../src/server/ports/json-endpoint.js';

const OVER_LIMIT: RateLimitResponse = {
  overallCode: CODE.OVER_LIMIT,
  statuses: [],
  responseHeadersToAdd: [],
  requestHeadersToAdd: [],
  rawBody: undefined,
  dynamicMetadata: undefined,
};

test('a request above a bound is decided, with the time that is left after it was read', async () => {
  const asked: Parameters<Decide>[] = [];
  let nowMicros = 1000;
  const { answer, maxBodyBytes } = jsonEndpoint({
    bounds: { ...DEFAULT_BOUNDS, maxBytes: 5000, maxDescriptors: 2 },
    decide: (...all) => {
      asked.push(all);
      return OVER_LIMIT;
    },
    isOnLoopback: true,
    metrics: { requestSeconds: { observe: () => {} }, refused: () => {} },
    monotonicMicros: () => (nowMicros += 100),
  });
  const connection = {};
  const call = {
    method: 'POST',
    query: new URLSearchParams(),
    peer: '127.0.0.1',
    headers: { 'grpc-timeout': '20m' },
    connection,
    isCancelled: () => false,
    body: Buffer.from('{"domain":"d","descriptors":[{},{},{}]}'),
  };
  expect(await answer(call)).toEqual({
    status: 429,
    contentType: 'application/json',
    body: '{"overallCode":"OVER_LIMIT"}',
  });
  expect(asked).toMatchObject([
    [{ domain: 'd', descriptors: [{}, {}], exceeded: 'descriptors' }, 19_900, { connection }],
  ]);
  expect(maxBodyBytes).toBe(5000);
});
