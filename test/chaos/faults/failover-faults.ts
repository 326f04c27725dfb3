import type { RedisNode } from '../topology/redis-node.js';
import type { SentinelTopology } from '../topology/sentinel-topology.js';
import type { Fault, Stage } from './fault.js';

type OfSentinel = Fault<SentinelTopology>;

const UNDECIDED = 'calls without a decision from Redis';

/** Restarts a killed master as a replica of its successor. */
async function bringBack({ topology }: Stage<SentinelTopology>, old: RedisNode): Promise<void> {
  await old.server.restart();
  await topology.follow(old);
}

/** Kills the master; resolves when another one serves, and its missing data is known. */
async function killMaster(stage: Stage<SentinelTopology>): Promise<RedisNode> {
  const old = stage.topology.master;
  await old.server.kill();
  stage.serves(await stage.topology.promoted(old));
  // Only data that the killed master had not replicated is lost.
  await stage.notePromotion();
  return old;
}

export const FAILOVER_FAULTS: readonly OfSentinel[] = [
  {
    name: 'the master killed, with an automatic failover',
    counts: UNDECIDED,
    loses: true,
    run: async (stage) => {
      const old = await killMaster(stage);
      await stage.untilDecided();
      await bringBack(stage, old);
      await stage.topology.untilWhole();
      return stage.answeredByPolicy();
    },
  },
  {
    name: 'the master paused, a failover, and the master resumed',
    counts: UNDECIDED,
    loses: true,
    run: async (stage) => {
      const { topology } = stage;
      const old = topology.master;
      old.server.pause();
      stage.serves(await topology.promoted(old));
      await stage.notePromotion();
      await stage.untilDecided();
      // The old master still considers itself the master, and keeps its connections.
      old.server.resume();
      await stage.sleep(stage.lasting(1000, 6000));
      await topology.follow(old);
      await topology.untilWhole();
      return stage.answeredByPolicy();
    },
  },
  {
    name: 'forced failover',
    counts: 'connections moved to the new master',
    loses: true,
    run: async (stage) => {
      const { topology, random } = stage;
      const old = topology.master;
      await topology.forceFailover(random.below(3));
      stage.serves(await topology.promoted(old));
      await stage.untilDecided();
      // The old master considers itself the master until the sentinels check it again, which they do every ten seconds.
      // Takes that it allowed after the promotion are lost.
      await stage.sleep(stage.lasting(1000, 12_000));
      await topology.follow(old);
      await topology.untilWhole();
      return topology.master.clients('weir');
    },
  },
  {
    name: 'the master demoted manually, with open connections',
    counts: 'answers READONLY from Redis',
    loses: true,
    run: async (stage) => {
      const { topology, random } = stage;
      const old = topology.master;
      const next = random.pick(topology.replicas);
      const before = await old.errors('READONLY');
      await topology.promoteByHand(next);
      stage.serves(await next.serves());
      await stage.notePromotion();
      await stage.untilDecided();
      await topology.untilWhole();
      return (await old.errors('READONLY')) - before;
    },
  },
  {
    name: 'the master killed while a sentinel is dead',
    counts: UNDECIDED,
    loses: true,
    run: async (stage) => {
      const { topology, random } = stage;
      const sentinel = random.below(3);
      await topology.killSentinel(sentinel);
      const old = await killMaster(stage);
      await stage.untilDecided();
      topology.restartSentinel(sentinel);
      await bringBack(stage, old);
      await topology.untilWhole();
      return stage.answeredByPolicy();
    },
  },
];
