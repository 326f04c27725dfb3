import type { StorageError } from '../../limiter/bucket-store.js';
import type { ShardMap } from '../sharded/shard.js';
import type { ConnectionCounts } from './connection/connection-options.js';
import type { ScriptReply, ScriptRequest } from './script-requests/script-request.js';

/** One server that buckets lie on. */
export interface RedisNodeState {
  /** As logs and metrics show it; no login. */
  readonly name: string;
  readonly up: boolean;
  /** Why it does not decide, as StorageError names it; undefined while it does. */
  readonly reason: StorageError['reason'] | undefined;
  /** How long its calls took lately, on average; undefined before there was an answer. */
  readonly latencyMicros: number | undefined;
}

/** Where buckets lie: in one Redis, or in several that act as one, whichever way they are set up. */
export interface RedisBuckets extends ShardMap {
  /** Whether it decides now, or a part of it. */
  readonly connected: boolean;
  /** Whether all of it does. */
  readonly whole: boolean;
  /** Of all servers together. */
  readonly connections: ConnectionCounts;
  /** The servers that are known now; before that those that are named. */
  readonly nodes: readonly RedisNodeState[];
  /** `listener` runs whenever a server comes (back) up. */
  onUp(listener: () => void): void;
  /** `listener` runs whenever a server goes away; `reason` is for the log. */
  onDown(listener: (reason: string) => void): void;
  /**
   * Runs a script on the server of its key, once, also where the answer is lost; while that server is away not at all.
   * Never rejects, and is over within REDIS_TIMEOUT, or half a second if that is less, after it was sent.
   */
  runScript(question: ScriptRequest): Promise<ScriptReply>;
  /** Another process, `from`, told what this one hears by `tellWork` of server `node`. */
  addOtherWork(from: number, micros: number, node: string): void;
}
