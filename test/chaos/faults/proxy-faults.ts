import type { ProxyFault } from '../fault-proxy.js';
import type { SingleTopology } from '../topology/single-topology.js';
import { type Fault, type FaultContext, RECOVERY_AFTER_DROPS_MS } from './fault.js';

function proxyFault(
  name: string,
  effect: string,
  choose: (context: FaultContext) => ProxyFault,
): Fault<SingleTopology> {
  return {
    name,
    effect,
    run: async (context) => {
      const { proxy } = context.topology;
      const before = proxy.effects;
      const fault = choose(context);
      proxy.start(fault);
      await context.sleep(context.duration(600, 3000));
      proxy.heal();
      // Packets that are still delayed now arrive late in any case.
      context.markAvailable(performance.now() + (fault.kind === 'delay' ? fault.ms : 0));
      return proxy.effects - before;
    },
  };
}

export const PROXY_FAULTS: readonly Fault<SingleTopology>[] = [
  proxyFault('packets delayed by less than the deadline', 'packets delayed', ({ random }) => ({
    kind: 'delay',
    ms: 5 + random.below(40),
  })),
  proxyFault('packets delayed by more than the deadline', 'packets delayed', ({ random }) => ({
    kind: 'delay',
    ms: 300 + random.below(700),
  })),
  {
    ...proxyFault('packets dropped on an open connection', 'packets dropped', () => ({ kind: 'drop' })),
    maxRecoveryMs: RECOVERY_AFTER_DROPS_MS,
  },
  proxyFault('answers truncated, and the connection closed', 'connections closed', ({ random }) => ({
    kind: 'truncate',
    oneIn: 1 + random.below(30),
  })),
  proxyFault('connections reset in the middle of an answer', 'connections reset', ({ random }) => ({
    kind: 'reset',
    oneIn: 1 + random.below(30),
  })),
  proxyFault('packets split at any byte', 'packets split', () => ({ kind: 'split' })),
];
