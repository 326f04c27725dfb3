import type { ClusterNode } from '../../support/redis/cluster-node.js';
import type { ClusterTopology } from '../topology/cluster-topology.js';
import { AFTER_SILENCE_MS, type Fault, type Stage } from './fault.js';

type OfCluster = Fault<ClusterTopology>;
type ClusterStage = Stage<ClusterTopology>;

const UNDECIDED = 'calls without a decision from Redis';
const MOVED = 'answers MOVED and ASK from Redis';

/** A master with the buckets that it serves. */
interface Victim {
  readonly node: ClusterNode;
  readonly buckets: ReadonlySet<string>;
  /** One of the buckets, with its slot. */
  readonly bucket: string;
  readonly slot: number;
}

async function chooseVictim({ topology, random, buckets }: ClusterStage): Promise<Victim> {
  const places = [...(await topology.placesOf(buckets))].filter(([, { size }]) => size > 0);
  const [node, struck] = random.pick(places);
  const bucket = random.pick([...struck]);
  return { node, buckets: struck, bucket, slot: await topology.slotOf(bucket) };
}

/** Calls {@link chooseVictim} and marks its buckets as affected, and possibly lost. */
async function strikeOne(stage: ClusterStage): Promise<Victim> {
  const victim = await chooseVictim(stage);
  stage.strikes(victim.buckets);
  stage.loseBuckets(victim.buckets);
  return victim;
}

/** Resolves when another node serves in place of the victim, and its missing data is known. */
async function untilReplaced(stage: ClusterStage, { node, bucket, slot }: Victim): Promise<void> {
  await stage.topology.cluster.successorOf(node, slot);
  stage.serves(await stage.topology.serves(bucket));
  // Only data that the old master had not replicated is lost.
  await stage.notePromotion();
}

/** Returns the number of MOVED and ASK answers while `body` ran. */
async function redirects({ topology }: ClusterStage, body: () => Promise<void>): Promise<number> {
  const count = async (): Promise<number> =>
    (await topology.errors('MOVED')) + (await topology.errors('ASK'));
  const before = await count();
  await body();
  return (await count()) - before;
}

function failover(name: string, how: 'FORCE' | 'TAKEOVER' | undefined, loses: boolean): OfCluster {
  return {
    name,
    counts: MOVED,
    run: (stage) =>
      redirects(stage, async () => {
        const { topology } = stage;
        const victim = await chooseVictim(stage);
        stage.strikes(victim.buckets);
        if (loses) stage.loseBuckets(victim.buckets);
        await topology.cluster.failover(victim.slot, how);
        stage.serves(await topology.serves(victim.bucket));
        await stage.untilDecided();
        await topology.cluster.waitStable();
      }),
  };
}

export const CLUSTER_FAULTS: readonly OfCluster[] = [
  {
    name: 'a master killed, and its replica takes over',
    counts: UNDECIDED,
    run: async (stage) => {
      const { topology } = stage;
      const victim = await strikeOne(stage);
      await topology.kill(victim.node);
      await untilReplaced(stage, victim);
      await stage.untilDecided();
      await topology.restart(victim.node);
      await topology.cluster.waitStable();
      return stage.answeredByPolicy();
    },
  },
  {
    name: 'a master paused, its replica takes over, and the master resumed',
    counts: UNDECIDED,
    run: async (stage) => {
      const { topology } = stage;
      const victim = await strikeOne(stage);
      victim.node.pause();
      await untilReplaced(stage, victim);
      await stage.untilDecided();
      // The old master still considers itself the master, and keeps its connections, until it learns of the new one.
      victim.node.resume();
      await topology.cluster.waitStable();
      return stage.answeredByPolicy();
    },
  },
  {
    name: 'a master cut off from other nodes returns old slots, after its replica has taken over',
    counts: 'answers CLUSTERDOWN from Redis',
    run: async (stage) => {
      const { topology } = stage;
      const victim = await strikeOne(stage);
      const old = topology.redis(victim.node);
      const before = await old.errors('CLUSTERDOWN');
      topology.cutOff(victim.node);
      await untilReplaced(stage, victim);
      await stage.untilDecided();
      await stage.sleep(stage.lasting(300, 4000));
      const after = await old.errors('CLUSTERDOWN');
      topology.rejoin();
      await topology.cluster.waitStable();
      return after - before;
    },
  },
  {
    name: 'a master and its replica killed and restarted without their data',
    counts: UNDECIDED,
    run: async (stage) => {
      const { topology } = stage;
      const victim = await strikeOne(stage);
      const replicas = await topology.cluster.replicasOf(victim.node);
      for (const node of [...replicas, victim.node]) await topology.kill(node);
      await stage.sleep(stage.lasting(500, 4000));
      for (const node of [victim.node, ...replicas]) await topology.restart(node);
      stage.serves(await topology.serves(victim.bucket));
      await stage.findBuckets();
      await stage.untilDecided();
      await topology.cluster.waitStable();
      return stage.answeredByPolicy();
    },
  },
  failover('manual failover with the help of the master', undefined, false),
  failover('manual failover without the master (FORCE)', 'FORCE', true),
  failover('manual failover without a vote (TAKEOVER)', 'TAKEOVER', true),
  {
    name: 'the slot of a busy tenant moved back and forth',
    counts: MOVED,
    run: (stage) =>
      redirects(stage, async () => {
        const { topology, random } = stage;
        const { cluster } = topology;
        const { node: home, slot } = await chooseVictim(stage);
        // Nobody waits for it.
        stage.strikes(new Set());
        const others = (await cluster.masters()).filter((node) => node !== home);
        for (let times = 1 + random.below(3); times > 0; times--) {
          for (const to of [random.pick(others), home]) {
            await cluster.beginMove(slot, to);
            await stage.sleep(stage.lasting(50, 500));
            await cluster.moveKeys(slot, to);
            await stage.sleep(stage.lasting(50, 500));
            await cluster.endMove(slot, to);
            await stage.sleep(stage.lasting(50, 500));
          }
        }
        stage.serves();
        await cluster.waitStable();
      }),
  },
  {
    name: 'a slot without a node for a while',
    counts: 'answers CLUSTERDOWN from Redis',
    run: async (stage) => {
      const { topology } = stage;
      const { node, bucket, slot } = await chooseVictim(stage);
      // The node is well, and serves others.
      stage.strikes(new Set([bucket]));
      const before = await topology.errors('CLUSTERDOWN');
      await node.command('CLUSTER', 'DELSLOTS', slot);
      await stage.sleep(stage.lasting(600, 3000));
      await node.command('CLUSTER', 'ADDSLOTS', slot);
      stage.serves(await topology.serves(bucket));
      return (await topology.errors('CLUSTERDOWN')) - before;
    },
  },
  {
    name: 'a node added, filled with slots, and removed',
    counts: MOVED,
    run: (stage) =>
      redirects(stage, async () => {
        const { topology } = stage;
        const { cluster } = topology;
        stage.strikes(new Set());
        const node = await topology.addNode();
        const homes = new Map<number, ClusterNode>();
        for (const [home, buckets] of await topology.placesOf(stage.buckets)) {
          for (const bucket of [...buckets].slice(0, 3)) homes.set(await topology.slotOf(bucket), home);
        }
        for (const slot of homes.keys()) await cluster.moveSlot(slot, node);
        await stage.sleep(stage.lasting(500, 3000));
        for (const [slot, home] of homes) await cluster.moveSlot(slot, home);
        await topology.removeNode(node);
        stage.serves();
      }),
  },
  {
    name: 'a node cut off from weir',
    counts: 'packets dropped',
    recoveryMs: AFTER_SILENCE_MS,
    run: async (stage) => {
      const { topology } = stage;
      const { node, buckets } = await chooseVictim(stage);
      stage.strikes(buckets);
      const proxy = topology.proxy(node);
      const before = proxy.bites;
      proxy.do({ kind: 'drop' });
      await stage.sleep(stage.lasting(600, 3000));
      proxy.heal();
      stage.serves();
      return proxy.bites - before;
    },
  },
  {
    name: 'slots moved while the other nodes are paused, which then return old slots',
    counts: MOVED,
    run: (stage) =>
      redirects(stage, async () => {
        const { topology, random } = stage;
        const { cluster } = topology;
        const { node: home, buckets } = await chooseVictim(stage);
        const to = random.pick((await cluster.masters()).filter((node) => node !== home));
        const stopped = cluster.nodes.filter((node) => node !== home && node !== to);
        const places = await topology.placesOf(stage.buckets);
        stage.strikes(new Set(stopped.flatMap((node) => [...(places.get(node) ?? [])])));
        const slots = await Promise.all([...buckets].map((bucket) => topology.slotOf(bucket)));
        // This is shorter than the time after which nodes consider another node failed.
        for (const node of stopped) node.pause();
        for (const slot of slots) {
          await cluster.beginMove(slot, to);
          await cluster.moveKeys(slot, to);
          await cluster.endMove(slot, to, []);
        }
        await stage.sleep(random.below(300));
        for (const node of stopped) node.resume();
        stage.serves();
        await stage.untilDecided();
        await cluster.waitStable();
        for (const slot of slots) await cluster.moveSlot(slot, home);
        await cluster.waitStable();
      }),
  },
];
