import type { BoundGroup } from './bound-texts.js';
import { CONNECTION_BOUNDS } from './connection-bounds.js';
import { DEBUG_BOUNDS } from './debug-bounds.js';
import { PROCESS_BOUNDS } from './process-bounds.js';
import { REDIS_BOUNDS } from './redis-bounds.js';
import { REQUEST_BOUNDS } from './request-bounds.js';

/**
 * Bounds on the work and memory that callers, clients of views, Redis and management servers can cause. `npm run docs`
 * generates the manual's table from these bounds, which use the constants of the source.
 */
export const BOUNDS: readonly BoundGroup[] = [
  ...REQUEST_BOUNDS,
  ...CONNECTION_BOUNDS,
  ...PROCESS_BOUNDS,
  ...DEBUG_BOUNDS,
  ...REDIS_BOUNDS,
];
