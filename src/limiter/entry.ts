/** One key and value of a descriptor (envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry). */
export interface Entry {
  readonly key: string;
  readonly value: string;
}
