/*
 * Decoding a RateLimitRequest and encoding a RateLimitResponse, with the hand-written codec and the reference codec. To
 * run it: `node build/test/bench/micro/codec.bench.js [part of a name …]`.
 */
import { CODE, LIMIT_UNIT, type RateLimitResponse, type ServiceCodec } from '../../../src/codec/messages.js';
import { createWireCodec } from '../../../src/codec/wire-codec.js';
import { createReferenceCodec } from '../../support/codec/reference-codec.js';
import { messageOf } from '../load/policy.js';
import { type MicroCase, runCases } from './measure.js';

function decoding(codec: () => Pick<ServiceCodec, 'decodeRequest'>, descriptors: number): MicroCase {
  return () => {
    const instance = codec();
    const message = messageOf(descriptors, 10);
    return () => instance.decodeRequest(message);
  };
}

function responseOf(statuses: number): RateLimitResponse {
  return {
    overallCode: CODE.OK,
    statuses: Array.from({ length: statuses }, (_, i) => ({
      code: CODE.OK,
      currentLimit: { name: `group-${i}`, requestsPerUnit: 100, unit: LIMIT_UNIT.second },
      limitRemaining: 42 + i,
      durationUntilResetSeconds: 1,
    })),
    responseHeadersToAdd: [
      { key: 'x-ratelimit-limit', value: '100' },
      { key: 'x-ratelimit-remaining', value: '42' },
      { key: 'x-ratelimit-reset', value: '1790000000' },
      { key: 'x-ratelimit-will-be-throttled', value: 'false' },
    ],
    requestHeadersToAdd: [],
    rawBody: undefined,
    dynamicMetadata: undefined,
  };
}

function encoding(codec: () => Pick<ServiceCodec, 'encodeResponse'>, statuses: number): MicroCase {
  return () => {
    const instance = codec();
    const response = responseOf(statuses);
    return () => instance.encodeResponse(response);
  };
}

runCases(__filename, {
  'decode, one descriptor': decoding(createWireCodec, 1),
  'decode, one descriptor, reference codec': decoding(createReferenceCodec, 1),
  'decode, 10 descriptors': decoding(createWireCodec, 10),
  'encode, one status and four headers': encoding(createWireCodec, 1),
  'encode, one status and four headers, reference codec': encoding(createReferenceCodec, 1),
  'encode, 10 statuses and four headers': encoding(createWireCodec, 10),
});
