import type { Attack } from './attack/attack.js';
import type { ServerSetup, StallServer } from './stall-server.js';

/** Something legal to send, or to change, beside which an innocent caller must not wait. */
export interface StallCase {
  readonly name: string;
  readonly attack?: () => Attack;
  /** Something else that goes on until `ended` says so; resolves with its bytes. */
  readonly beside?: (server: StallServer, ended: () => boolean) => Promise<number>;
  /** Connections of the attacker: 1 and 16. */
  readonly connections?: readonly number[];
}

export interface StallGroup {
  readonly setup: ServerSetup;
  readonly cases: readonly StallCase[];
}
