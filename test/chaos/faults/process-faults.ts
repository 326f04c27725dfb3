import type { SingleTopology } from '../topology/single-topology.js';
import type { Fault, Stage } from './fault.js';

type Single = Fault<SingleTopology>;

const UNDECIDED = 'calls without a decision from Redis';

/** Returns how often Redis counted an error while `body` ran. */
async function errorsDuring(
  stage: Stage<SingleTopology>,
  code: string,
  body: () => Promise<void>,
): Promise<number> {
  const { master } = stage.topology;
  const before = await master.errors(code);
  await body();
  return (await master.errors(code)) - before;
}

/** Changes a setting of Redis temporarily, so that it answers calls with an error. */
function misconfigured(
  name: string,
  code: string,
  change: (stage: Stage<SingleTopology>) => Promise<readonly [set: string[], undo: string[]]>,
): Single {
  return {
    name,
    counts: `answers ${code} from Redis`,
    run: (stage) =>
      errorsDuring(stage, code, async () => {
        const { master } = stage.topology;
        const [set, undo] = await change(stage);
        await master.command(...(set as [string]));
        await stage.sleep(stage.lasting(500, 2000));
        await master.command(...(undo as [string]));
        stage.serves(await master.serves());
      }),
  };
}

/** Blocks Redis with a long computation. Resolves when it ends. */
function busyLoop(stage: Stage<SingleTopology>, ms: number): Promise<unknown> {
  const script =
    "local a = redis.call('TIME') local from = a[1] * 1000 + a[2] / 1000 " +
    "repeat a = redis.call('TIME') until a[1] * 1000 + a[2] / 1000 >= from + ARGV[1]";
  return stage.topology.master.patientCommand(ms + 30_000, 'EVAL', script, '0', String(ms));
}

export const PROCESS_FAULTS: readonly Single[] = [
  {
    name: 'Redis killed and restarted with its data',
    counts: UNDECIDED,
    run: async (stage) => {
      const { master } = stage.topology;
      await master.server.kill();
      await stage.sleep(stage.lasting(200, 3000));
      const { password } = master;
      master.password = '';
      await master.server.restart();
      await stage.topology.requirePassword(password);
      stage.serves(await master.serves());
      return stage.answeredByPolicy();
    },
  },
  {
    name: 'Redis killed and restarted without its data',
    counts: UNDECIDED,
    loses: true,
    run: async (stage) => {
      const { master } = stage.topology;
      const { password } = master;
      master.password = '';
      await master.server.kill();
      await stage.sleep(stage.lasting(300, 2000));
      await master.restartEmpty();
      await stage.topology.requirePassword(password);
      stage.serves(await master.serves());
      await stage.findBuckets();
      await stage.sleep(stage.lasting(100, 500));
      return stage.answeredByPolicy();
    },
  },
  {
    name: 'Redis paused (SIGSTOP) and resumed',
    counts: UNDECIDED,
    run: async (stage) => {
      const { master } = stage.topology;
      master.server.pause();
      await stage.sleep(stage.lasting(400, 4000));
      master.server.resume();
      stage.serves(await master.serves());
      return stage.answeredByPolicy();
    },
  },
  {
    name: 'a foreign script hangs',
    counts: UNDECIDED,
    run: async (stage) => {
      await busyLoop(stage, stage.lasting(400, 3000));
      stage.serves();
      return stage.answeredByPolicy();
    },
  },
  {
    name: 'a foreign script hangs, and Redis answers BUSY',
    counts: 'answers BUSY from Redis',
    run: (stage) =>
      errorsDuring(stage, 'BUSY', async () => {
        const { master } = stage.topology;
        await master.command('CONFIG', 'SET', 'lua-time-limit', '50');
        await busyLoop(stage, stage.lasting(500, 3000));
        stage.serves();
        await master.command('CONFIG', 'SET', 'lua-time-limit', '5000');
      }),
  },
  {
    name: 'DEBUG SLEEP',
    counts: UNDECIDED,
    run: async (stage) => {
      const ms = stage.lasting(400, 3000);
      await stage.topology.master.patientCommand(ms + 30_000, 'DEBUG', 'SLEEP', String(ms / 1000));
      stage.serves();
      return stage.answeredByPolicy();
    },
  },
  {
    name: 'SCRIPT FLUSH',
    counts: 'answers NOSCRIPT from Redis',
    run: (stage) =>
      errorsDuring(stage, 'NOSCRIPT', async () => {
        for (let times = 1 + stage.random.below(3); times > 0; times--) {
          await stage.topology.master.command('SCRIPT', 'FLUSH');
          await stage.sleep(stage.lasting(300, 600));
        }
        stage.serves();
      }),
  },
  {
    name: 'FLUSHALL',
    counts: 'lost buckets',
    loses: true,
    run: async (stage) => {
      const { master } = stage.topology;
      const before = await master.buckets();
      await master.command('FLUSHALL');
      stage.serves();
      await stage.findBuckets();
      return before.size;
    },
  },
  misconfigured('maxmemory reached', 'OOM', async () => [
    ['CONFIG', 'SET', 'maxmemory', '1mb'],
    ['CONFIG', 'SET', 'maxmemory', '0'],
  ]),
  misconfigured('a master without its replicas', 'NOREPLICAS', async () => [
    ['CONFIG', 'SET', 'min-replicas-to-write', '1'],
    ['CONFIG', 'SET', 'min-replicas-to-write', '0'],
  ]),
  misconfigured('Redis demoted to a replica, with open connections', 'READONLY', async () => [
    ['REPLICAOF', '127.0.0.1', '1'],
    ['REPLICAOF', 'NO', 'ONE'],
  ]),
];
