/** Full name of the service in envoy/service/ratelimit/v3/rls.proto. */
export const RATE_LIMIT_SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';
/** HTTP/2 path of its only method. */
export const SHOULD_RATE_LIMIT_PATH = `/${RATE_LIMIT_SERVICE}/ShouldRateLimit`;
