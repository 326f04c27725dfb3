import type { Mischief } from '../fault-proxy.js';
import type { SingleTopology } from '../topology/single-topology.js';
import { AFTER_SILENCE_MS, type Fault, type Stage } from './fault.js';

function onTheWay(name: string, counts: string, mischief: (stage: Stage) => Mischief): Fault<SingleTopology> {
  return {
    name,
    counts,
    run: async (stage) => {
      const { proxy } = stage.topology;
      const before = proxy.bites;
      const done = mischief(stage);
      proxy.do(done);
      await stage.sleep(stage.lasting(600, 3000));
      proxy.heal();
      // What was on its way by then still comes late, whatever weir does.
      stage.serves(performance.now() + (done.kind === 'delay' ? done.ms : 0));
      return proxy.bites - before;
    },
  };
}

export const PROXY_FAULTS: readonly Fault<SingleTopology>[] = [
  onTheWay('packets delayed by less than the deadline', 'packets delayed', ({ random }) => ({
    kind: 'delay',
    ms: 5 + random.below(40),
  })),
  onTheWay('packets delayed by more than the deadline', 'packets delayed', ({ random }) => ({
    kind: 'delay',
    ms: 300 + random.below(700),
  })),
  {
    ...onTheWay('packets dropped on an open connection', 'packets dropped', () => ({ kind: 'drop' })),
    recoveryMs: AFTER_SILENCE_MS,
  },
  onTheWay('answers truncated, and the connection closed', 'connections closed', ({ random }) => ({
    kind: 'truncate',
    oneIn: 1 + random.below(30),
  })),
  onTheWay('connections reset in the middle of an answer', 'connections reset', ({ random }) => ({
    kind: 'reset',
    oneIn: 1 + random.below(30),
  })),
  onTheWay('packets split at any byte', 'packets split', () => ({ kind: 'split' })),
];
