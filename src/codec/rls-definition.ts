import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { assetPath } from '../assets.js';

/** Full name of the service in envoy/service/ratelimit/v3/rls.proto. */
export const RATE_LIMIT_SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';
/** HTTP/2 path of its only method. */
export const SHOULD_RATE_LIMIT_PATH = `/${RATE_LIMIT_SERVICE}/ShouldRateLimit`;

const RLS_PROTO = 'envoy/service/ratelimit/v3/rls.proto';

/**
 * Reads `proto/` and returns every message, enum and service of rls.proto and what it imports, for the reference codec.
 * Enums are numbers, 64 bit integers are (rounded) numbers, absent scalars their defaults and absent
 * messages null. Throws when the build is incomplete.
 */
export function loadRateLimitDefinition(): PackageDefinition {
  return loadSync(RLS_PROTO, { includeDirs: [assetPath('proto')], longs: Number, defaults: true });
}

let forReflection: PackageDefinition | undefined;

/**
 * The same with field names as they stand in the files (`hits_addend`), which is what reflection must show. Read once.
 */
export function loadReflectionDefinition(): PackageDefinition {
  forReflection ??= loadSync(RLS_PROTO, { includeDirs: [assetPath('proto')], keepCase: true });
  return forReflection;
}
