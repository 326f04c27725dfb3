import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from '../../support/process/wait-for.js';
import { redisCommand } from '../../support/redis/redis-command.js';
import { type RedisServer, type StartRedisOptions, startRedis } from '../../support/redis/redis-server.js';
import { bucketOfKey } from '../calls/buckets.js';

const COMMAND_MS = 2000;
const WRITABLE_TIMEOUT_MS = 30_000;

/** A Redis process. Its commands use direct connections, which proxy faults do not affect. */
export class RedisNode {
  readonly server: RedisServer;
  /** The password that Redis requires; empty if it requires none. */
  password = '';

  constructor(server: RedisServer) {
    this.server = server;
  }

  static async start(options: StartRedisOptions = {}): Promise<RedisNode> {
    const args = ['--enable-debug-command', 'local', ...(options.args ?? [])];
    return new RedisNode(await startRedis({ ...options, args }));
  }

  get port(): number {
    return this.server.port;
  }

  /** Sends a command on a new connection. Rejects if Redis returns an error, or does not answer within 2 s. */
  command(name: string, ...args: readonly string[]): Promise<unknown> {
    return this.commandWithin(COMMAND_MS, name, ...args);
  }

  /** Sends a command like {@link command}, but waits `timeoutMs` for the answer. */
  commandWithin(timeoutMs: number, name: string, ...args: readonly string[]): Promise<unknown> {
    const target = { port: this.port, password: this.password, patienceMs: timeoutMs };
    return redisCommand(target, name, ...args);
  }

  /** Returns the number of error answers with this code, such as `NOSCRIPT`. */
  async errors(code: string): Promise<number> {
    const text = String(await this.command('INFO', 'errorstats'));
    return Number(new RegExp(`^errorstat_${code}:count=(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  }

  /** Returns the number of connections with this client name. */
  async clients(name: string): Promise<number> {
    return String(await this.command('CLIENT', 'LIST')).split(` name=${name} `).length - 1;
  }

  /**
   * Waits until this node is a master that accepts writes to `key`. Resolves with the time, in milliseconds of the
   * test's clock.
   */
  async waitUntilWritable(key = 'chaos:serves'): Promise<number> {
    await waitFor(
      `Redis on port ${this.port} to accept writes`,
      async () => (await this.command('SET', key, '1', 'PX', '1')) === 'OK',
      WRITABLE_TIMEOUT_MS,
    );
    return performance.now();
  }

  /** Kills Redis if it runs, and restarts it without data. */
  async restartEmpty(): Promise<void> {
    await this.server.kill();
    for (const name of ['appendonlydir', 'appendonly.aof', 'dump.rdb']) {
      rmSync(join(this.server.folder, name), { recursive: true, force: true });
    }
    await this.server.restart();
  }

  /** Returns the time until each bucket is full, in microseconds, by name. Full buckets are missing. */
  async buckets(): Promise<ReadonlyMap<string, number>> {
    const script =
      "local r = redis.call('TIME') local t = {r[1] .. string.format('%06d', r[2])} " +
      // GET fails for keys of other types, and for keys in slots that are being moved.
      "for _, k in ipairs(redis.call('KEYS', '*')) do local v = redis.pcall('GET', k) " +
      "if type(v) == 'string' then t[#t+1] = k t[#t+1] = v end end return t";
    const reply = (await this.command('EVAL', script, '0')) as string[];
    const nowMicros = Number(reply[0]);
    const found = new Map<string, number>();
    for (let at = 1; at + 1 < reply.length; at += 2) {
      const name = bucketOfKey(reply[at] as string);
      const fullAt = /^[tl]1:(\d+):/.exec(reply[at + 1] as string)?.[1];
      if (name !== undefined && fullAt !== undefined)
        found.set(name, Math.max(0, Number(fullAt) - nowMicros));
    }
    return found;
  }

  stop(): Promise<void> {
    return this.server.stop();
  }
}
