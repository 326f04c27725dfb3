import type { CompiledPolicy } from './compiled-policy.js';

/** All domains of one configuration; a reload replaces the whole set. */
export interface PolicySet {
  readonly domains: ReadonlyMap<string, CompiledPolicy>;
  /**
   * 12 hexadecimal digits of a hash over all domains and the names and contents of their files, which identifies the
   * policies of a replica.
   */
  readonly version: string;
}
