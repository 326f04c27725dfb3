import type { CompiledPolicy } from './compiled-policy.js';

/** All domains of one configuration, swapped as a whole on reload. */
export interface PolicySet {
  readonly domains: ReadonlyMap<string, CompiledPolicy>;
  /**
   * 12 hex digits over each domain in force and the files it was made from, names and contents: tells replicas apart.
   */
  readonly version: string;
}
