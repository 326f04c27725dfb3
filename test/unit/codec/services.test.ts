/*
 * Checks that messages of health and reflection are encoded and decoded as by @grpc/proto-loader with the proto files.
 */
import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';
import { describe, expect, test } from '@jest/globals';
import { DecodeError } from '../../../src/codec/messages.js';
import { protoFiles } from '../../../src/codec/proto-files.js';
import {
  decodeHealthListRequest,
  decodeHealthRequest,
  decodeHealthResponse,
  encodeHealthList,
  encodeHealthRequest,
  encodeHealthResponse,
} from '../../../src/codec/services/health-messages.js';
import {
  decodeReflectionRequest,
  encodeReflectionResponse,
} from '../../../src/codec/services/reflection-messages.js';
import { assetPath } from '../../../src/runtime/assets.js';

const includeDirs = [assetPath('proto')];
const health = loadSync('grpc/health/v1/health.proto', { includeDirs, enums: String, defaults: true });
const reflection = loadSync('grpc/reflection/v1/reflection.proto', { includeDirs, oneofs: true });
const type = (definition: typeof health, name: string) =>
  definition[name] as MessageTypeDefinition<object, object>;

const LONG = 'ü'.repeat(300);

describe('health', () => {
  const request = type(health, 'grpc.health.v1.HealthCheckRequest');
  const response = type(health, 'grpc.health.v1.HealthCheckResponse');
  const list = type(health, 'grpc.health.v1.HealthListResponse');

  test.each(['', 'envoy.service.ratelimit.v3.RateLimitService', LONG])('a request for "%s"', (service) => {
    expect(request.deserialize(encodeHealthRequest({ service }))).toEqual({ service });
    expect(decodeHealthRequest(request.serialize({ service }))).toEqual({ service });
  });

  test.each(['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'] as const)('the status %s', (status) => {
    expect(response.deserialize(encodeHealthResponse({ status }))).toEqual({ status });
    expect(decodeHealthResponse(response.serialize({ status }))).toEqual({ status });
  });

  test('a list', () => {
    const statuses = { '': { status: 'SERVING' }, [LONG]: { status: 'NOT_SERVING' } } as const;
    expect(list.deserialize(encodeHealthList({ statuses }))).toEqual({ statuses });
    expect(list.deserialize(encodeHealthList({ statuses: {} }))).toEqual({ statuses: {} });
  });

  test('ignores fields of later versions, and refuses malformed messages and long names', () => {
    const later = Buffer.from([0x50, 1, 0x5a, 2, 1, 2]);
    expect(decodeHealthRequest(Buffer.concat([later, request.serialize({ service: 'a' }), later]))).toEqual({
      service: 'a',
    });
    expect(decodeHealthResponse(Buffer.concat([later, Buffer.of(8, 99)]))).toEqual({ status: 'UNKNOWN' });
    for (const bytes of [[0x0a, 5, 1], [0x08], [0x0a], [0xff]]) {
      expect(() => decodeHealthRequest(Buffer.from(bytes))).toThrow(DecodeError);
    }
    expect(decodeHealthListRequest(later)).toEqual({});
    expect(() => decodeHealthListRequest(Buffer.of(0x0a, 5))).toThrow(DecodeError);
    const named = (bytes: number) => request.serialize({ service: 'x'.repeat(bytes) });
    expect(decodeHealthRequest(named(4096)).service).toHaveLength(4096);
    expect(() => decodeHealthRequest(named(4097))).toThrow(DecodeError);
  });
});

describe('reflection', () => {
  const request = type(reflection, 'grpc.reflection.v1.ServerReflectionRequest');
  const response = type(reflection, 'grpc.reflection.v1.ServerReflectionResponse');

  test.each([
    [{ fileByFilename: 'a.proto' }, { kind: 'file', name: 'a.proto' }],
    [{ fileContainingSymbol: LONG }, { kind: 'symbol', name: LONG }],
    [
      { fileContainingExtension: { containingType: 'a.B', extensionNumber: 7 } },
      { kind: 'extension', type: 'a.B', number: 7 },
    ],
    [{ fileContainingExtension: {} }, { kind: 'extension', type: '', number: 0 }],
    [{ allExtensionNumbersOfType: 'a.B' }, { kind: 'extensions', type: 'a.B' }],
    [{ listServices: '*' }, { kind: 'services' }],
    [{}, { kind: 'none' }],
  ])('the request %j', (asked, question) => {
    const bytes = request.serialize({ host: 'h', ...asked });
    expect(decodeReflectionRequest(bytes)).toEqual({ host: 'h', question, bytes });
  });

  test.each([
    [
      'services',
      { kind: 'services', names: ['a.B', LONG] },
      { listServicesResponse: { service: [{ name: 'a.B' }, { name: LONG }] } },
    ],
    [
      'files',
      { kind: 'files', files: [Buffer.from('first'), Buffer.alloc(70_000, 'x')] },
      { fileDescriptorResponse: { fileDescriptorProto: [Buffer.from('first'), Buffer.alloc(70_000, 'x')] } },
    ],
    [
      'an error',
      { kind: 'error', code: 5, message: `no ${LONG}` },
      { errorResponse: { errorCode: 5, errorMessage: `no ${LONG}` } },
    ],
  ] as const)('an answer with %s', (_, answer, expected) => {
    for (const host of ['', LONG]) {
      const asked = decodeReflectionRequest(request.serialize({ host, fileContainingSymbol: 'a.B' }));
      expect(response.deserialize(encodeReflectionResponse(asked, answer))).toEqual({
        ...(host !== '' && { validHost: host }),
        originalRequest: {
          host,
          fileContainingSymbol: 'a.B',
          messageRequest: 'fileContainingSymbol',
        },
        ...expected,
        messageResponse: Object.keys(expected)[0],
      });
    }
  });

  test('ignores fields of later versions, and refuses long names', () => {
    for (const unknown of [0x12, 0x42, 0x7a]) {
      const bytes = Buffer.concat([
        Buffer.of(unknown, 1, 0x61),
        request.serialize({ fileContainingSymbol: 'a.B' }),
      ]);
      expect(decodeReflectionRequest(bytes).question).toEqual({ kind: 'symbol', name: 'a.B' });
    }
    for (const asked of [{ fileContainingSymbol: 'x'.repeat(5000) }, { host: 'x'.repeat(5000) }]) {
      expect(() => decodeReflectionRequest(request.serialize(asked))).toThrow(DecodeError);
    }
  });

  test('malformed requests are refused', () => {
    for (const bytes of [[0x1a, 9], [0x18], [0x2a, 2, 0x0a, 9]]) {
      expect(() => decodeReflectionRequest(Buffer.from(bytes))).toThrow(DecodeError);
    }
  });
});

test('files import only earlier files, and define their symbols', () => {
  const seen = new Set<string>();
  for (const { name, imports, services, symbols } of protoFiles()) {
    for (const imported of imports) expect(seen).toContain(imported);
    seen.add(name);
    for (const service of services) expect(symbols).toContain(service);
  }
  const rls = protoFiles().find(({ name }) => name === 'envoy/service/ratelimit/v3.proto');
  expect(rls?.symbols).toEqual(
    expect.arrayContaining([
      'envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit',
      'envoy.service.ratelimit.v3.RateLimitRequest.domain',
      'envoy.service.ratelimit.v3.RateLimitResponse.OVER_LIMIT',
      'envoy.service.ratelimit.v3.RateLimitResponse.Code.OVER_LIMIT',
    ]),
  );
});
