import { expect } from '@jest/globals';

/** A decision as the client received it. */
export interface Decision {
  readonly code: string;
  readonly limit: number;
  readonly remaining: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** A gRPC status. */
export interface Failure {
  readonly status: number;
  readonly message: string;
}

/** Results of each client in this folder for a weir with {@link INTEROP_POLICY}, in the order of its calls. */
export interface InteropReport {
  /** One hit on a bucket of 100. */
  readonly allowed: Decision;
  /** One hit on a limit of 0. */
  readonly denied: Decision;
  /** A request without domain. */
  readonly error: Failure;
  readonly unknownMethod: Failure;
  /** 200 concurrent calls for a bucket of 100. */
  readonly burst: { readonly ok: number; readonly overLimit: number };
  /** The names that reflection lists, sorted. */
  readonly services: readonly string[];
  readonly health: {
    readonly check: string;
    /** Status of a health check for an unknown service. */
    readonly unknown: number;
    /** States that a watch reported until weir ended it during shutdown, and the final status. */
    readonly watch: readonly string[];
    readonly watchEnd: number;
  };
}

/** Buckets that do not refill during a test. */
export const INTEROP_POLICY = `
domain: interop
response_headers: [x-ratelimit]
descriptors:
  - key: tenant
    rate_limit:
      token_bucket: { max_tokens: 100, tokens_per_fill: 1, fill_interval: 1h }
  - key: closed
    rate_limit: { unit: hour, requests_per_unit: 0 }
`;

/** Results that every client must report. */
export const GOOD_REPORT: InteropReport = {
  allowed: {
    code: 'OK',
    limit: 100,
    remaining: 99,
    headers: {
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '99',
      'x-ratelimit-reset': expect.stringMatching(/^\d+$/) as unknown as string,
    },
  },
  denied: {
    code: 'OVER_LIMIT',
    limit: 0,
    remaining: 0,
    headers: {
      'x-ratelimit-limit': '0',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': expect.stringMatching(/^\d+$/) as unknown as string,
      'x-ratelimit-will-be-throttled': 'true',
    },
  },
  error: { status: 3, message: 'rate limit domain must not be empty' },
  unknownMethod: {
    status: 12,
    message: 'The server does not implement the method /envoy.service.ratelimit.v3.RateLimitService/Other',
  },
  burst: { ok: 100, overLimit: 100 },
  services: [
    'envoy.service.ratelimit.v3.RateLimitService',
    'grpc.health.v1.Health',
    'grpc.reflection.v1.ServerReflection',
    'grpc.reflection.v1alpha.ServerReflection',
  ],
  health: { check: 'SERVING', unknown: 5, watch: ['SERVING', 'NOT_SERVING'], watchEnd: 14 },
};
