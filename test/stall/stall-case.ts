import type { Attack } from './attack/attack.js';
import type { ServerSetup, StallServer } from './stall-server.js';

/** Valid input or a change of policies that must not delay the innocent caller. */
export interface StallCase {
  readonly name: string;
  readonly attack?: () => Attack;
  /** Work next to the attack, until `ended` returns true. Resolves with the number of bytes written or sent. */
  readonly background?: (server: StallServer, ended: () => boolean) => Promise<number>;
  /** Numbers of attacker connections. The case runs once for each; 1 and 16 by default. */
  readonly connections?: readonly number[];
}

/** Cases that use the same server. */
export interface StallGroup {
  readonly setup: ServerSetup;
  readonly cases: readonly StallCase[];
}
