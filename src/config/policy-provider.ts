import type { DomainStatus } from '../policy/policy.js';
import type { PolicySet } from '../policy/policy-set.js';
import type { ConfigProblem } from './yaml/config-problem.js';

/**
 * Most problems of a load that are kept to be shown, and logged, one by one; weir check-config prints up to a thousand.
 */
export const MAX_SHOWN = 20;

/** Why a reload was tried: a file system event, the slow poll, or someone asked (`start`, `signal`, …). */
export type ReloadReason = 'change' | 'poll' | 'start' | 'signal';

/**
 * The policies that decisions are made by, wherever they come from: files, a management server, or the process that
 * this one is a worker of.
 */
export interface PolicyProvider {
  /**
   * The snapshot in force; undefined while there never was one (FORCE_START_WITHOUT_INITIAL_CONFIG). Take it once per
   * request.
   */
  current(): PolicySet | undefined;
  /** `listener` is told after each load; `success` is false when it was bad, so that what was in force stays. */
  onReload(listener: (success: boolean) => void): void;
}

/** A provider that loads policies in this process, and follows them until it is closed. */
export interface LoadingPolicyProvider extends PolicyProvider {
  /** What is wrong with what was loaded last, at most {@link MAX_SHOWN}; empty when nothing is. */
  errors(): readonly ConfigProblem[];
  /** How each domain stands, sorted by name. */
  domains(): readonly DomainStatus[];
  /** Somebody asks for the policies to be loaded again. */
  reload(reason: ReloadReason): void;
  close(): void;
}
