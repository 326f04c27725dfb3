/** One key and value of a descriptor (envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry). */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** What a rule answers while the store cannot be asked; see docs/operate/redis.md, "When Redis is away". */
export const STORE_FAILURE_POLICIES = ['error', 'allow', 'deny', 'local'] as const;
export type StoreFailurePolicy = (typeof STORE_FAILURE_POLICIES)[number];
