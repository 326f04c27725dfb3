import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from '../../support/process/wait-for.js';
import { redisCommand } from '../../support/redis/redis-command.js';
import { type RedisServer, type StartRedisOptions, startRedis } from '../../support/redis/redis-server.js';
import { bucketOfKey } from '../calls/buckets.js';

const COMMAND_MS = 2000;
const SERVES_MS = 30_000;

/** A Redis process, and a way to command it that goes past everything that faults do to others. */
export class RedisNode {
  readonly server: RedisServer;
  /** What it wants from its clients; empty for nothing. */
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

  /** One command on a connection of its own. Rejects with what Redis answers, or when it does not within 2 s. */
  command(name: string, ...args: readonly string[]): Promise<unknown> {
    return this.patientCommand(COMMAND_MS, name, ...args);
  }

  /** {@link command} that waits as long for an answer. */
  patientCommand(patienceMs: number, name: string, ...args: readonly string[]): Promise<unknown> {
    return redisCommand({ port: this.port, password: this.password, patienceMs }, name, ...args);
  }

  /** How often it answered an error of that code, such as `NOSCRIPT`. */
  async errors(code: string): Promise<number> {
    const text = String(await this.command('INFO', 'errorstats'));
    return Number(new RegExp(`^errorstat_${code}:count=(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  }

  /** How many connections there are of that name. */
  async clients(name: string): Promise<number> {
    return String(await this.command('CLIENT', 'LIST')).split(` name=${name} `).length - 1;
  }

  /**
   * Resolves once it is a master that writes, to a key of our own or to `key`; to when it was seen, milliseconds of the
   * harness's clock.
   */
  async serves(key = 'chaos:serves'): Promise<number> {
    await waitFor(
      `Redis on port ${this.port} to take writes`,
      async () => (await this.command('SET', key, '1', 'PX', '1')) === 'OK',
      SERVES_MS,
    );
    return performance.now();
  }

  /** Kills it, if it is not dead, and starts it again with nothing. */
  async restartEmpty(): Promise<void> {
    await this.server.kill();
    for (const name of ['appendonlydir', 'appendonly.aof', 'dump.rdb']) {
      rmSync(join(this.server.folder, name), { recursive: true, force: true });
    }
    await this.server.restart();
  }

  /**
   * Buckets by name with the microseconds until each is full, by its own clock; those that are full are missing.
   */
  async buckets(): Promise<ReadonlyMap<string, number>> {
    const script =
      "local r = redis.call('TIME') local t = {r[1] .. string.format('%06d', r[2])} " +
      // Of another type, or of a slot that is on its way, it is an error.
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
