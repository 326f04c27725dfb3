import { freePorts } from '../process/free-port.js';
import { waitFor } from '../process/wait-for.js';
import { redisCommand } from './redis-command.js';
import { type RedisServer, startRedis } from './redis-server.js';

export interface StartSentinelOptions {
  readonly masterName: string;
  /** Port of the watched master, on 127.0.0.1. */
  readonly masterPort: number;
  readonly quorum: number;
  /** Password of the master and its replicas. */
  readonly masterPassword?: string;
  /** Further lines of sentinel.conf, such as `requirepass x`. */
  readonly lines?: readonly string[];
}

/** Starts a real Redis Sentinel on 127.0.0.1. */
export async function startSentinel(options: StartSentinelOptions): Promise<RedisServer> {
  const { masterName, masterPort, quorum, masterPassword, lines = [] } = options;
  const [port] = (await freePorts(1)) as [number];
  return startRedis({
    port,
    sentinelConf: [
      `sentinel monitor ${masterName} 127.0.0.1 ${masterPort} ${quorum}`,
      `sentinel down-after-milliseconds ${masterName} 500`,
      `sentinel failover-timeout ${masterName} 5000`,
      ...(masterPassword === undefined ? [] : [`sentinel auth-pass ${masterName} ${masterPassword}`]),
      ...lines,
    ],
  });
}

/** A master, its replica, and the Sentinels that watch them. */
export interface SentinelSetup {
  /** The initial master, and its replica. */
  readonly nodes: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
  /** Address in the form of REDIS_URL. */
  readonly url: string;
  /** Returns the port of the master that the Sentinels announce. */
  masterPort(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts a master called `mymaster` with a replica and Sentinels; resolves when all of them know each other. */
export async function startSentinelSetup({
  sentinels: sentinelCount = 3,
  password,
  sentinelPassword,
}: {
  readonly sentinels?: number;
  readonly password?: string;
  readonly sentinelPassword?: string;
} = {}): Promise<SentinelSetup> {
  const auth = password === undefined ? [] : ['--requirepass', password, '--masterauth', password];
  const master = await startRedis({ args: auth });
  const replica = await startRedis({ args: [...auth, '--replicaof', '127.0.0.1', String(master.port)] });
  const nodes = [master, replica];
  const login = password === undefined ? {} : { password };
  await waitFor('the replica to be in step', async () => {
    return (await fieldOf(master.port, login, ['INFO', 'replication'], /connected_slaves:(\d+)/)) === '1';
  });
  const sentinels: RedisServer[] = [];
  for (let i = 0; i < sentinelCount; i++) {
    sentinels.push(
      await startSentinel({
        masterName: 'mymaster',
        masterPort: master.port,
        quorum: Math.floor(sentinelCount / 2) + 1,
        ...(password === undefined ? {} : { masterPassword: password }),
        lines:
          sentinelPassword === undefined
            ? []
            : [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`],
      }),
    );
  }
  const sentinelLogin = sentinelPassword === undefined ? {} : { password: sentinelPassword };
  for (const { port } of sentinels) {
    await waitFor('the Sentinels to know all', async () => {
      const info = String(await commandOf(port, sentinelLogin, ['INFO', 'sentinel']));
      return info.includes(`status=ok`) && info.includes(`slaves=1,sentinels=${sentinelCount}`);
    });
  }
  return {
    nodes,
    sentinels,
    url: ['mymaster', ...sentinels.map(({ port }) => `127.0.0.1:${port}`)].join(','),
    async masterPort() {
      const running = sentinels[sentinels.length - 1] as RedisServer;
      const address = await commandOf(running.port, sentinelLogin, [
        'SENTINEL',
        'GET-MASTER-ADDR-BY-NAME',
        'mymaster',
      ]);
      return Number((address as string[])[1]);
    },
    async stop() {
      await Promise.all([...sentinels, ...nodes].map((server) => server.stop()));
    },
  };
}

/** Calls {@link redisCommand} with the words of a command as one string. */
export function commandOf(
  port: number,
  login: { readonly password?: string },
  [name, ...args]: readonly [string, ...string[]],
): Promise<unknown> {
  return redisCommand({ port, ...login }, name, ...args);
}

async function fieldOf(
  port: number,
  login: { readonly password?: string },
  command: readonly [string, ...string[]],
  pattern: RegExp,
): Promise<string | undefined> {
  return pattern.exec(String(await commandOf(port, login, command)))?.[1];
}
