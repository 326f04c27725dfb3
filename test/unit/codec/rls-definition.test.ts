import { loadSync } from '@grpc/proto-loader';
import { describe, expect, test } from '@jest/globals';
import { loadRateLimitDefinition } from '../../../src/codec/client-codec.js';
import { RATE_LIMIT_SERVICE, SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import { assetPath } from '../../../src/runtime/assets.js';

interface DescriptorJson {
  readonly name: string;
  readonly field?: readonly { readonly name: string; readonly number: number }[];
  readonly nestedType?: readonly DescriptorJson[];
  readonly enumType?: readonly EnumJson[];
}
interface EnumJson {
  readonly name: string;
  readonly value: readonly { readonly name: string; readonly number: number }[];
}

function numbers(items: readonly { readonly name: string; readonly number: number }[] = []): object {
  return Object.fromEntries(items.map(({ name, number }) => [name, number]));
}

describe('the proto files', () => {
  const includeDirs = [assetPath('proto')];
  const definition = loadSync('envoy/service/ratelimit/v3/rls.proto', { includeDirs, keepCase: true });
  const message = (name: string): DescriptorJson => definition[name]?.['type'] as unknown as DescriptorJson;
  const nested = (parent: string, name: string): DescriptorJson | undefined =>
    message(parent).nestedType?.find((type) => type.name === name);
  const request = 'envoy.service.ratelimit.v3.RateLimitRequest';
  const response = 'envoy.service.ratelimit.v3.RateLimitResponse';
  const descriptor = 'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor';

  // Field numbers of Envoy's v3 API.
  test('have the field numbers of the codec', () => {
    expect(numbers(message(request).field)).toEqual({ domain: 1, descriptors: 2, hits_addend: 3 });
    expect(numbers(message(response).field)).toEqual({
      overall_code: 1,
      statuses: 2,
      response_headers_to_add: 3,
      request_headers_to_add: 4,
      raw_body: 5,
      dynamic_metadata: 6,
      quota: 7,
    });
    expect(numbers(nested(response, 'DescriptorStatus')?.field)).toEqual({
      code: 1,
      current_limit: 2,
      limit_remaining: 3,
      duration_until_reset: 4,
      quota: 5,
    });
    expect(numbers(nested(response, 'RateLimit')?.field)).toEqual({ name: 3, requests_per_unit: 1, unit: 2 });
    expect(numbers(nested(response, 'Quota')?.field)).toEqual({ requests: 1, valid_until: 2, id: 3 });
    expect(numbers(message(descriptor).field)).toEqual({
      entries: 1,
      limit: 2,
      hits_addend: 3,
      is_negative_hits: 4,
    });
    expect(numbers(nested(descriptor, 'Entry')?.field)).toEqual({ key: 1, value: 2 });
    expect(numbers(nested(descriptor, 'RateLimitOverride')?.field)).toEqual({
      requests_per_unit: 1,
      unit: 2,
    });
    expect(numbers(message('envoy.config.core.v3.HeaderValue').field)).toEqual({
      key: 1,
      value: 2,
      raw_value: 3,
    });
  });

  test('have the enum numbers of the codec', () => {
    const unit = definition['envoy.type.v3.RateLimitUnit']?.['type'] as unknown as EnumJson;
    const units = { UNKNOWN: 0, SECOND: 1, MINUTE: 2, HOUR: 3, DAY: 4, MONTH: 5, YEAR: 6 };
    expect(numbers(unit.value)).toEqual(units);
    expect(numbers(nested(response, 'RateLimit')?.enumType?.[0]?.value)).toEqual({ ...units, WEEK: 7 });
    expect(numbers(message(response).enumType?.[0]?.value)).toEqual({ UNKNOWN: 0, OK: 1, OVER_LIMIT: 2 });
  });

  test('define the served method', () => {
    const service = loadRateLimitDefinition()[RATE_LIMIT_SERVICE] as unknown as Record<
      string,
      { path: string }
    >;
    expect(Object.values(service).map(({ path }) => path)).toEqual([SHOULD_RATE_LIMIT_PATH]);
  });
});
