import type { RedisNode } from '../topology/redis-node.js';
import type { SentinelTopology } from '../topology/sentinel-topology.js';
import type { Fault, FaultContext } from './fault.js';

type SentinelFault = Fault<SentinelTopology>;

const UNDECIDED = 'calls without a decision from Redis';

/** Restarts a killed master as a replica of its successor. */
async function restartAsReplica({ topology }: FaultContext<SentinelTopology>, old: RedisNode): Promise<void> {
  await old.server.restart();
  await topology.makeReplica(old);
}

/** Kills the master, waits until another node is the master, and records its buckets. Resolves with the old master. */
async function killMaster(context: FaultContext<SentinelTopology>): Promise<RedisNode> {
  const old = context.topology.master;
  await old.server.kill();
  context.markAvailable(await context.topology.waitForPromotion(old));
  // Redis loses only data that the killed master did not replicate.
  await context.recordPromotion();
  return old;
}

export const FAILOVER_FAULTS: readonly SentinelFault[] = [
  {
    name: 'the master killed, with an automatic failover',
    effect: UNDECIDED,
    losesBuckets: true,
    run: async (context) => {
      const old = await killMaster(context);
      await context.waitForDecisions();
      await restartAsReplica(context, old);
      await context.topology.waitUntilHealthy();
      return context.undecidedCalls();
    },
  },
  {
    name: 'the master paused, a failover, and the master resumed',
    effect: UNDECIDED,
    losesBuckets: true,
    run: async (context) => {
      const { topology } = context;
      const old = topology.master;
      old.server.pause();
      context.markAvailable(await topology.waitForPromotion(old));
      await context.recordPromotion();
      await context.waitForDecisions();
      // The old master still considers itself the master, and keeps its connections.
      old.server.resume();
      await context.sleep(context.duration(1000, 6000));
      await topology.makeReplica(old);
      await topology.waitUntilHealthy();
      return context.undecidedCalls();
    },
  },
  {
    name: 'forced failover',
    effect: 'connections moved to the new master',
    losesBuckets: true,
    run: async (context) => {
      const { topology, random } = context;
      const old = topology.master;
      await topology.forceFailover(random.below(3));
      context.markAvailable(await topology.waitForPromotion(old));
      await context.waitForDecisions();
      // The old master considers itself the master until the sentinels check it again, at most ten seconds later. Takes
      // that it allowed after the promotion are lost.
      await context.sleep(context.duration(1000, 12_000));
      await topology.makeReplica(old);
      await topology.waitUntilHealthy();
      return topology.master.clients('weir');
    },
  },
  {
    name: 'the master demoted manually, with open connections',
    effect: 'answers READONLY from Redis',
    losesBuckets: true,
    run: async (context) => {
      const { topology, random } = context;
      const old = topology.master;
      const next = random.pick(topology.replicas);
      const before = await old.errors('READONLY');
      await topology.promoteManually(next);
      context.markAvailable(await next.waitUntilWritable());
      await context.recordPromotion();
      await context.waitForDecisions();
      await topology.waitUntilHealthy();
      return (await old.errors('READONLY')) - before;
    },
  },
  {
    name: 'the master killed while a sentinel is dead',
    effect: UNDECIDED,
    losesBuckets: true,
    run: async (context) => {
      const { topology, random } = context;
      const sentinel = random.below(3);
      await topology.killSentinel(sentinel);
      const old = await killMaster(context);
      await context.waitForDecisions();
      topology.restartSentinel(sentinel);
      await restartAsReplica(context, old);
      await topology.waitUntilHealthy();
      return context.undecidedCalls();
    },
  },
];
