import type { SteppingClockTopology } from '../topology/stepping-clock-topology.js';
import type { Fault } from './fault.js';

function redisClockFault(name: string, fromMs: number, toMs: number): Fault<SteppingClockTopology> {
  return {
    name,
    effect: 'steps that commands noticed',
    // After the step, the buckets are full, or have times in the future.
    losesBuckets: true,
    stepsClock: true,
    run: async (context) => {
      const { topology, random } = context;
      await topology.step(Math.sign(fromMs) * (Math.abs(fromMs) + random.below(Math.abs(toMs - fromMs))));
      context.markAvailable();
      await context.sleep(context.duration(1000, 4000));
      await topology.step(0);
      context.markAvailable();
      return 2;
    },
  };
}

export const CLOCK_FAULTS: readonly Fault<SteppingClockTopology>[] = [
  redisClockFault('the Redis clock steps forward, and back', 1500, 3_600_000),
  redisClockFault('the Redis clock steps back, and forward', -1500, -3_600_000),
  redisClockFault('the Redis clock steps back by less than a second', -600, -900),
  {
    name: 'the clock of weir steps',
    effect: 'processes with a stepped clock',
    run: async (context) => {
      const sign = context.random.oneIn(2) ? 1 : -1;
      let effects = await context.stepWeirClock(sign * (1000 + context.random.below(86_400_000)));
      await context.sleep(context.duration(500, 2000));
      effects += await context.stepWeirClock(0);
      context.markAvailable();
      return effects;
    },
  },
];
