import type { SingleTopology } from '../topology/single-topology.js';
import type { Fault, FaultContext } from './fault.js';

type SingleFault = Fault<SingleTopology>;

const UNDECIDED = 'calls without a decision from Redis';

/** Returns how often Redis counted an error while `body` ran. */
async function errorsDuring(
  context: FaultContext<SingleTopology>,
  code: string,
  body: () => Promise<void>,
): Promise<number> {
  const { master } = context.topology;
  const before = await master.errors(code);
  await body();
  return (await master.errors(code)) - before;
}

/** Changes a setting of Redis temporarily, so that it answers calls with an error. */
function settingFault(
  name: string,
  code: string,
  change: (context: FaultContext<SingleTopology>) => Promise<readonly [set: string[], undo: string[]]>,
): SingleFault {
  return {
    name,
    effect: `answers ${code} from Redis`,
    run: (context) =>
      errorsDuring(context, code, async () => {
        const { master } = context.topology;
        const [set, undo] = await change(context);
        await master.command(...(set as [string]));
        await context.sleep(context.duration(500, 2000));
        await master.command(...(undo as [string]));
        context.markAvailable(await master.waitUntilWritable());
      }),
  };
}

/** Blocks Redis with a long computation. Resolves when it ends. */
function busyLoop(context: FaultContext<SingleTopology>, ms: number): Promise<unknown> {
  const script =
    "local a = redis.call('TIME') local from = a[1] * 1000 + a[2] / 1000 " +
    "repeat a = redis.call('TIME') until a[1] * 1000 + a[2] / 1000 >= from + ARGV[1]";
  return context.topology.master.commandWithin(ms + 30_000, 'EVAL', script, '0', String(ms));
}

export const PROCESS_FAULTS: readonly SingleFault[] = [
  {
    name: 'Redis killed and restarted with its data',
    effect: UNDECIDED,
    run: async (context) => {
      const { master } = context.topology;
      await master.server.kill();
      await context.sleep(context.duration(200, 3000));
      const { password } = master;
      master.password = '';
      await master.server.restart();
      await context.topology.requirePassword(password);
      context.markAvailable(await master.waitUntilWritable());
      return context.undecidedCalls();
    },
  },
  {
    name: 'Redis killed and restarted without its data',
    effect: UNDECIDED,
    losesBuckets: true,
    run: async (context) => {
      const { master } = context.topology;
      const { password } = master;
      master.password = '';
      await master.server.kill();
      await context.sleep(context.duration(300, 2000));
      await master.restartEmpty();
      await context.topology.requirePassword(password);
      context.markAvailable(await master.waitUntilWritable());
      await context.measureLoss();
      await context.sleep(context.duration(100, 500));
      return context.undecidedCalls();
    },
  },
  {
    name: 'Redis paused (SIGSTOP) and resumed',
    effect: UNDECIDED,
    run: async (context) => {
      const { master } = context.topology;
      master.server.pause();
      await context.sleep(context.duration(400, 4000));
      master.server.resume();
      context.markAvailable(await master.waitUntilWritable());
      return context.undecidedCalls();
    },
  },
  {
    name: 'a foreign script hangs',
    effect: UNDECIDED,
    run: async (context) => {
      await busyLoop(context, context.duration(400, 3000));
      context.markAvailable();
      return context.undecidedCalls();
    },
  },
  {
    name: 'a foreign script hangs, and Redis answers BUSY',
    effect: 'answers BUSY from Redis',
    run: (context) =>
      errorsDuring(context, 'BUSY', async () => {
        const { master } = context.topology;
        await master.command('CONFIG', 'SET', 'lua-time-limit', '50');
        await busyLoop(context, context.duration(500, 3000));
        context.markAvailable();
        await master.command('CONFIG', 'SET', 'lua-time-limit', '5000');
      }),
  },
  {
    name: 'DEBUG SLEEP',
    effect: UNDECIDED,
    run: async (context) => {
      const ms = context.duration(400, 3000);
      await context.topology.master.commandWithin(ms + 30_000, 'DEBUG', 'SLEEP', String(ms / 1000));
      context.markAvailable();
      return context.undecidedCalls();
    },
  },
  {
    name: 'SCRIPT FLUSH',
    effect: 'answers NOSCRIPT from Redis',
    run: (context) =>
      errorsDuring(context, 'NOSCRIPT', async () => {
        for (let times = 1 + context.random.below(3); times > 0; times--) {
          await context.topology.master.command('SCRIPT', 'FLUSH');
          await context.sleep(context.duration(300, 600));
        }
        context.markAvailable();
      }),
  },
  {
    name: 'FLUSHALL',
    effect: 'lost buckets',
    losesBuckets: true,
    run: async (context) => {
      const { master } = context.topology;
      const before = await master.buckets();
      await master.command('FLUSHALL');
      context.markAvailable();
      await context.measureLoss();
      return before.size;
    },
  },
  settingFault('maxmemory reached', 'OOM', async () => [
    ['CONFIG', 'SET', 'maxmemory', '1mb'],
    ['CONFIG', 'SET', 'maxmemory', '0'],
  ]),
  settingFault('a master without its replicas', 'NOREPLICAS', async () => [
    ['CONFIG', 'SET', 'min-replicas-to-write', '1'],
    ['CONFIG', 'SET', 'min-replicas-to-write', '0'],
  ]),
  settingFault('Redis demoted to a replica, with open connections', 'READONLY', async () => [
    ['REPLICAOF', '127.0.0.1', '1'],
    ['REPLICAOF', 'NO', 'ONE'],
  ]),
];
