import { Client, credentials } from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition, type MethodDefinition } from '@grpc/proto-loader';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { assetPath } from '../../src/runtime/assets.js';
import { type RlsServer, startRlsServer } from '../support/grpc/rls-server.js';
import { runToEnd } from '../support/process/processes.js';
import { optionalToolPath } from '../support/process/tools.js';

const SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';
const SERVICES = [
  SERVICE,
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
];
const MESSAGES = [
  'envoy.service.ratelimit.v3.RateLimitRequest',
  'envoy.service.ratelimit.v3.RateLimitResponse',
  'envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus',
  'envoy.service.ratelimit.v3.RateLimitResponse.RateLimit',
  'envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit',
  'envoy.service.ratelimit.v3.RateLimitResponse.Code',
  'envoy.service.ratelimit.v3.RateLimitResponse.Quota',
  'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor',
  'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry',
  'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.RateLimitOverride',
  'envoy.config.core.v3.HeaderValue',
  'envoy.type.v3.RateLimitUnit',
  'google.protobuf.Duration',
  'google.protobuf.ListValue',
  'google.protobuf.NullValue',
  'google.protobuf.Struct',
  'google.protobuf.Timestamp',
  'google.protobuf.UInt64Value',
  'google.protobuf.Value',
  'grpc.health.v1.HealthCheckRequest',
  'grpc.health.v1.HealthCheckResponse',
  'grpc.health.v1.HealthListResponse',
  'grpc.reflection.v1.ServerReflectionRequest',
  'grpc.reflection.v1alpha.ServerReflectionResponse',
];

let server: RlsServer;
beforeAll(async () => {
  server = await startRlsServer((request) => ({
    overallCode: CODE.OVER_LIMIT,
    statuses: request.descriptors.map(() => ({
      code: CODE.OVER_LIMIT,
      currentLimit: { name: 'chats', requestsPerUnit: 100, unit: 2 },
      limitRemaining: 0,
      durationUntilResetSeconds: 61,
    })),
    responseHeadersToAdd: [{ key: 'x-ratelimit-limit', value: '100' }],
    requestHeadersToAdd: [],
    rawBody: undefined,
    dynamicMetadata: { rule: 'chats', list: [1, null] },
  }));
  server.health.setServing(true);
});
afterAll(() => server.server.close());

/** Sends one request to server reflection. */
async function reflect(version: 'v1' | 'v1alpha', question: object): Promise<Record<string, unknown>> {
  const includeDirs = [assetPath('proto')];
  const definition = loadSync(`grpc/reflection/${version}/reflection.proto`, { includeDirs, keepCase: true });
  const service = definition[`grpc.reflection.${version}.ServerReflection`] as unknown as Record<
    string,
    MethodDefinition<object, Record<string, unknown>>
  >;
  const method = service['ServerReflectionInfo'] as MethodDefinition<object, Record<string, unknown>>;
  const client = new Client(server.address, credentials.createInsecure());
  try {
    return await new Promise((resolve, reject) => {
      const call = client.makeBidiStreamRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
      );
      call.on('data', (answer: Record<string, unknown>) => {
        call.end();
        resolve(answer);
      });
      call.on('error', reject);
      call.write(question);
    });
  } finally {
    client.close();
  }
}

interface FileJson {
  readonly name: string;
  readonly dependency?: readonly string[];
}

describe.each(['v1', 'v1alpha'] as const)('reflection %s', (version) => {
  test('lists every service', async () => {
    const { list_services_response: list } = (await reflect(version, { list_services: '*' })) as {
      list_services_response: { service: { name: string }[] };
    };
    expect(list.service.map(({ name }) => name).sort()).toEqual(SERVICES);
  });

  test('sends a file with its dependencies', async () => {
    const file = loadSync('google/protobuf/descriptor.proto')[
      'google.protobuf.FileDescriptorProto'
    ] as MessageTypeDefinition<object, object>;
    const { file_descriptor_response: response } = (await reflect(version, {
      file_containing_symbol: SERVICE,
    })) as { file_descriptor_response: { file_descriptor_proto: Buffer[] } };
    const files = response.file_descriptor_proto.map((bytes) => file.deserialize(bytes) as FileJson);
    const names = files.map(({ name }) => name);
    expect(names).toContain('google/protobuf/struct.proto');
    expect(names).toContain('google/protobuf/wrappers.proto');
    expect(new Set(files.flatMap(({ dependency = [] }) => dependency))).toEqual(
      new Set(names.filter((name) => name !== 'envoy/service/ratelimit/v3.proto')),
    );
  });

  test('reports NOT_FOUND for an unknown symbol', async () => {
    expect(await reflect(version, { file_containing_symbol: 'envoy.Nothing' })).toMatchObject({
      error_response: { error_code: 5 },
    });
  });
});

const grpcurl = optionalToolPath('grpcurl');
(grpcurl === undefined ? describe.skip : describe)('grpcurl without proto files', () => {
  const run = async (...args: string[]): Promise<string> => {
    const result = await runToEnd(grpcurl as string, ['-plaintext', ...args]);
    if (result.code !== 0) throw new Error(result.stderr);
    return result.stdout;
  };

  test('lists services and methods', async () => {
    expect((await run(server.address, 'list')).trim().split('\n')).toEqual(SERVICES);
    expect(await run(server.address, 'list', SERVICE)).toBe(`${SERVICE}.ShouldRateLimit\n`);
  });

  test('describes every service, message and enum', async () => {
    for (const name of [...SERVICES, ...MESSAGES]) {
      expect(await run(server.address, 'describe', name)).toMatch(
        new RegExp(`^${name} is an? (service|message|enum):`),
      );
    }
    expect(await run(server.address, 'describe', 'google.protobuf.Struct')).toContain(
      'map<string, .google.protobuf.Value> fields = 1;',
    );
  });

  test.each([
    [
      'camelCase',
      {
        hitsAddend: 2,
        descriptors: [{ hitsAddend: 5, isNegativeHits: true, limit: { requestsPerUnit: 3, unit: 'HOUR' } }],
      },
    ],
    [
      'snake_case',
      {
        hits_addend: 2,
        descriptors: [{ hits_addend: '5', is_negative_hits: true, limit: { requests_per_unit: 3, unit: 3 } }],
      },
    ],
  ])('calls with JSON in %s', async (_name, { descriptors, ...rest }) => {
    const entries = [{ key: 'tenant', value: 'acme' }];
    const body = { domain: 'open-api', descriptors: [{ entries, ...descriptors[0] }], ...rest };
    const text = await run('-d', JSON.stringify(body), server.address, `${SERVICE}/ShouldRateLimit`);
    expect(server.requests.at(-1)).toEqual({
      domain: 'open-api',
      descriptors: [{ entries, limit: { requestsPerUnit: 3, unit: 3 }, hitsAddend: 5, isNegativeHits: true }],
      hitsAddend: 2,
    });
    expect(JSON.parse(text)).toEqual({
      overallCode: 'OVER_LIMIT',
      statuses: [
        {
          code: 'OVER_LIMIT',
          currentLimit: { name: 'chats', requestsPerUnit: 100, unit: 'MINUTE' },
          durationUntilReset: '61s',
        },
      ],
      responseHeadersToAdd: [{ key: 'x-ratelimit-limit', value: '100' }],
      dynamicMetadata: { rule: 'chats', list: [1, null] },
    });
  });

  test('checks health by every name', async () => {
    for (const service of ['', SERVICE, 'ratelimit']) {
      const text = await run(
        '-d',
        JSON.stringify({ service }),
        server.address,
        'grpc.health.v1.Health/Check',
      );
      expect(JSON.parse(text)).toEqual({ status: 'SERVING' });
    }
    expect(JSON.parse(await run(server.address, 'grpc.health.v1.Health/List'))).toEqual({
      statuses: Object.fromEntries(['', SERVICE, 'ratelimit'].map((name) => [name, { status: 'SERVING' }])),
    });
    await expect(
      run('-d', '{"service":"other"}', server.address, 'grpc.health.v1.Health/Check'),
    ).rejects.toThrow('NotFound');
  });
});
