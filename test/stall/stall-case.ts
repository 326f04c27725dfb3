import type { Attack } from './attack/attack.js';
import type { StallServer } from './stall-server.js';

/** How the weir of some cases is started. */
export interface ServerSetup {
  readonly name: string;
  /** Policy files by name, beside that of the innocent caller. */
  readonly files: Readonly<Record<string, string>>;
  readonly env?: NodeJS.ProcessEnv;
  /** With a Redis of its own. */
  readonly redis?: boolean;
  /** Policies come from a management server in place of files. */
  readonly xds?: boolean;
  /** Nobody reads its standard output. */
  readonly readsOutput?: boolean;
  /** What is done before the first case, such as calls that make series. */
  prepare?(server: StallServer): Promise<void>;
}

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
