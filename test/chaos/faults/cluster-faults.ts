import type { ClusterNode } from '../../support/redis/cluster-node.js';
import type { ClusterTopology } from '../topology/cluster-topology.js';
import { type Fault, type FaultContext, RECOVERY_AFTER_DROPS_MS } from './fault.js';

type ClusterFault = Fault<ClusterTopology>;
type ClusterContext = FaultContext<ClusterTopology>;

const UNDECIDED = 'calls without a decision from Redis';
const MOVED = 'answers MOVED and ASK from Redis';
const MOST_MOVES = 20;

/** A master with the buckets that it serves. */
interface Victim {
  readonly node: ClusterNode;
  readonly buckets: ReadonlySet<string>;
  /** One of the buckets, with its slot. */
  readonly bucket: string;
  readonly slot: number;
}

async function chooseVictim({ topology, random, buckets }: ClusterContext): Promise<Victim> {
  const masters = [...(await topology.bucketsByMaster(buckets))].filter(([, { size }]) => size > 0);
  const [node, affected] = random.pick(masters);
  const bucket = random.pick([...affected]);
  return { node, buckets: affected, bucket, slot: await topology.slotOf(bucket) };
}

/** Calls {@link chooseVictim} and marks its buckets as affected, and possibly lost. */
async function affectOneMaster(context: ClusterContext): Promise<Victim> {
  const victim = await chooseVictim(context);
  context.limitTo(victim.buckets);
  context.markPossiblyLost(victim.buckets);
  return victim;
}

/** Waits until another node serves the slots of the victim, and records its buckets. */
async function waitForReplacement(context: ClusterContext, { node, bucket, slot }: Victim): Promise<void> {
  await context.topology.cluster.successorOf(node, slot);
  context.markAvailable(await context.topology.waitUntilWritable(bucket));
  // Redis loses only data that the old master did not replicate.
  await context.recordPromotion();
}

/** Returns the number of MOVED and ASK answers while `body` ran, which can ask for their number so far. */
async function redirectsDuring(
  { topology }: ClusterContext,
  body: (redirects: () => Promise<number>) => Promise<void>,
): Promise<number> {
  const count = async (): Promise<number> =>
    (await topology.errors('MOVED')) + (await topology.errors('ASK'));
  const before = await count();
  const redirects = async (): Promise<number> => (await count()) - before;
  await body(redirects);
  return redirects();
}

function failover(name: string, how: 'FORCE' | 'TAKEOVER' | undefined, losesBuckets: boolean): ClusterFault {
  return {
    name,
    effect: MOVED,
    run: (context) =>
      redirectsDuring(context, async () => {
        const { topology } = context;
        const victim = await chooseVictim(context);
        context.limitTo(victim.buckets);
        if (losesBuckets) context.markPossiblyLost(victim.buckets);
        await topology.cluster.failover(victim.slot, how);
        context.markAvailable(await topology.waitUntilWritable(victim.bucket));
        await context.waitForDecisions();
        await topology.cluster.waitStable();
      }),
  };
}

export const CLUSTER_FAULTS: readonly ClusterFault[] = [
  {
    name: 'a master killed, and its replica takes over',
    effect: UNDECIDED,
    run: async (context) => {
      const { topology } = context;
      const victim = await affectOneMaster(context);
      await topology.kill(victim.node);
      await waitForReplacement(context, victim);
      await context.waitForDecisions();
      await topology.restart(victim.node);
      await topology.cluster.waitStable();
      return context.undecidedCalls();
    },
  },
  {
    name: 'a master paused, its replica takes over, and the master resumed',
    effect: UNDECIDED,
    run: async (context) => {
      const { topology } = context;
      const victim = await affectOneMaster(context);
      victim.node.pause();
      await waitForReplacement(context, victim);
      await context.waitForDecisions();
      // The old master still considers itself the master, and keeps its connections, until it detects the new master.
      victim.node.resume();
      await topology.cluster.waitStable();
      return context.undecidedCalls();
    },
  },
  {
    name: 'a master cut off from other nodes returns old slots, after its replica has taken over',
    effect: 'answers CLUSTERDOWN from Redis',
    run: async (context) => {
      const { topology } = context;
      const victim = await affectOneMaster(context);
      const old = topology.redis(victim.node);
      const before = await old.errors('CLUSTERDOWN');
      topology.cutOff(victim.node);
      await waitForReplacement(context, victim);
      await context.waitForDecisions();
      await context.sleep(context.duration(300, 4000));
      const after = await old.errors('CLUSTERDOWN');
      topology.rejoin();
      await topology.cluster.waitStable();
      return after - before;
    },
  },
  {
    name: 'a master and its replica killed and restarted without their data',
    effect: UNDECIDED,
    run: async (context) => {
      const { topology } = context;
      const victim = await affectOneMaster(context);
      const replicas = await topology.cluster.replicasOf(victim.node);
      for (const node of [...replicas, victim.node]) await topology.kill(node);
      await context.sleep(context.duration(500, 4000));
      for (const node of [victim.node, ...replicas]) await topology.restart(node);
      context.markAvailable(await topology.waitUntilWritable(victim.bucket));
      await context.measureLoss();
      await context.waitForDecisions();
      await topology.cluster.waitStable();
      return context.undecidedCalls();
    },
  },
  failover('manual failover with the help of the master', undefined, false),
  failover('manual failover without the master (FORCE)', 'FORCE', true),
  failover('manual failover without a vote (TAKEOVER)', 'TAKEOVER', true),
  {
    name: 'the slot of a busy tenant moved back and forth',
    effect: MOVED,
    run: (context) =>
      redirectsDuring(context, async (redirects) => {
        const { topology, random } = context;
        const { cluster } = topology;
        const { node: home, slot } = await chooseVictim(context);
        // The move of a slot must not affect any bucket.
        context.limitTo(new Set());
        const others = (await cluster.masters()).filter((node) => node !== home);
        const times = 1 + random.below(3);
        // On a busy machine, no call may have noticed the first moves.
        for (let at = 0; at < times || (at < MOST_MOVES && (await redirects()) === 0); at++) {
          for (const to of [random.pick(others), home]) {
            await cluster.beginMove(slot, to);
            await context.sleep(context.duration(50, 500));
            await cluster.moveKeys(slot, to);
            await context.sleep(context.duration(50, 500));
            await cluster.endMove(slot, to);
            await context.sleep(context.duration(50, 500));
          }
        }
        context.markAvailable();
        await cluster.waitStable();
      }),
  },
  {
    name: 'a slot without a node for a while',
    effect: 'answers CLUSTERDOWN from Redis',
    run: async (context) => {
      const { topology } = context;
      const { node, bucket, slot } = await chooseVictim(context);
      // The node still serves its other slots.
      context.limitTo(new Set([bucket]));
      const before = await topology.errors('CLUSTERDOWN');
      await node.command('CLUSTER', 'DELSLOTS', slot);
      await context.sleep(context.duration(600, 3000));
      await node.command('CLUSTER', 'ADDSLOTS', slot);
      context.markAvailable(await topology.waitUntilWritable(bucket));
      return (await topology.errors('CLUSTERDOWN')) - before;
    },
  },
  {
    name: 'a node added, filled with slots, and removed',
    effect: MOVED,
    run: (context) =>
      redirectsDuring(context, async () => {
        const { topology } = context;
        const { cluster } = topology;
        context.limitTo(new Set());
        const node = await topology.addNode();
        const homes = new Map<number, ClusterNode>();
        for (const [home, buckets] of await topology.bucketsByMaster(context.buckets)) {
          for (const bucket of [...buckets].slice(0, 3)) homes.set(await topology.slotOf(bucket), home);
        }
        for (const slot of homes.keys()) await cluster.moveSlot(slot, node);
        await context.sleep(context.duration(500, 3000));
        for (const [slot, home] of homes) await cluster.moveSlot(slot, home);
        await topology.removeNode(node);
        context.markAvailable();
      }),
  },
  {
    name: 'a node cut off from weir',
    effect: 'packets dropped',
    maxRecoveryMs: RECOVERY_AFTER_DROPS_MS,
    run: async (context) => {
      const { topology } = context;
      const { node, buckets } = await chooseVictim(context);
      context.limitTo(buckets);
      const proxy = topology.proxy(node);
      const before = proxy.effects;
      proxy.start({ kind: 'drop' });
      await context.sleep(context.duration(600, 3000));
      proxy.heal();
      context.markAvailable();
      return proxy.effects - before;
    },
  },
  {
    name: 'slots moved while the other nodes are paused, which then return old slots',
    effect: MOVED,
    run: (context) =>
      redirectsDuring(context, async () => {
        const { topology, random } = context;
        const { cluster } = topology;
        const { node: home, buckets } = await chooseVictim(context);
        const to = random.pick((await cluster.masters()).filter((node) => node !== home));
        const stopped = cluster.nodes.filter((node) => node !== home && node !== to);
        const bucketsByMaster = await topology.bucketsByMaster(context.buckets);
        context.limitTo(new Set(stopped.flatMap((node) => [...(bucketsByMaster.get(node) ?? [])])));
        const slots = await Promise.all([...buckets].map((bucket) => topology.slotOf(bucket)));
        // The pause is shorter than the time after which nodes consider another node failed.
        for (const node of stopped) node.pause();
        for (const slot of slots) {
          await cluster.beginMove(slot, to);
          await cluster.moveKeys(slot, to);
          await cluster.endMove(slot, to, []);
        }
        await context.sleep(random.below(300));
        for (const node of stopped) node.resume();
        context.markAvailable();
        await context.waitForDecisions();
        await cluster.waitStable();
        for (const slot of slots) await cluster.moveSlot(slot, home);
        await cluster.waitStable();
      }),
  },
];
