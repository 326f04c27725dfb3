import type { Attack, AttackResult } from '../attack/attacker/attack.js';
import type { ServerSetup, StallServer } from './stall-server.js';

/** Valid input or a change of policies that must not delay the innocent caller. */
export interface StallCase {
  readonly name: string;
  /** Attacks that run at the same time. */
  readonly attacks?: () => readonly Attack[];
  /**
   * Whether the attacks are paced so that weir uses about 60 % of a core. Otherwise, they send as fast as weir answers.
   * The innocent caller's latencies are then compared to those without attacks.
   */
  readonly isPaced?: boolean;
  /** Work next to the attacks, until `ended` returns true. Resolves with the number of bytes written or sent. */
  readonly background?: (server: StallServer, ended: () => boolean) => Promise<number>;
  /** Returns what is wrong with the answers to the attacks. */
  readonly failuresOf?: (result: AttackResult) => readonly string[];
}

/** Cases that use the same server. */
export interface StallGroup {
  readonly setup: ServerSetup;
  readonly cases: readonly StallCase[];
}
