import type { StorageError } from '../../limiter/bucket-store.js';
import type { ShardMap } from '../sharded/shard.js';
import type { ConnectionCounts } from './connection/connection-options.js';

/** The state of a server that stores buckets. */
export interface RedisNodeState {
  /** Name in logs and metrics, without a login. */
  readonly name: string;
  readonly up: boolean;
  /** Why the server cannot decide, as a reason of StorageError; undefined while it can. */
  readonly reason: StorageError['reason'] | undefined;
  /** Average duration of recent calls; undefined before the first reply. */
  readonly latencyMicros: number | undefined;
}

/** A script call that is not a take. Its reply is one text. */
export interface ScriptRequest {
  readonly script: string;
  /** The only key that it reads or writes, with its prefix. */
  readonly key: string;
  /** Arguments after the time, which is the same as in take.lua: '' if the script must read the clock of Redis. */
  readonly args: readonly string[];
}

/**
 * Reply of a script, or its failure. After a failure with the reason `timeout`, the script may have run; after any
 * other failure, it has not.
 */
export type ScriptReply = string | StorageError;

/** The servers that store buckets: one Redis, or several that act as one. */
export interface RedisBackend extends ShardMap {
  /** Whether at least one partition can be decided. */
  readonly connected: boolean;
  /** Whether all partitions can be decided. */
  readonly isComplete: boolean;
  /** Counts of all servers together. */
  readonly connections: ConnectionCounts;
  /** The known servers. Before the first are known, the servers in the settings. */
  readonly nodes: readonly RedisNodeState[];
  /** Adds a listener that runs whenever a server becomes available. */
  onUp(listener: () => void): void;
  /** Adds a listener that runs whenever a server becomes unavailable; `reason` is for the log. */
  onDown(listener: (reason: string) => void): void;
  /**
   * Runs a script once on the server of its key, even if the reply is lost. Does not run it while that server is
   * unavailable, or while the slot of the key moves to another server. Never rejects. Ends within the larger of
   * REDIS_TIMEOUT and 0.5 s after it was sent.
   */
  runScript(request: ScriptRequest): Promise<ScriptReply>;
}
