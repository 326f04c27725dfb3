import type { SteppingClockTopology } from '../topology/stepping-clock-topology.js';
import type { Fault } from './fault.js';

function redisSteps(name: string, fromMs: number, toMs: number): Fault<SteppingClockTopology> {
  return {
    name,
    counts: 'steps that commands noticed',
    // After the step, the buckets are full, or have times in the future.
    loses: true,
    run: async (stage) => {
      const { topology, random } = stage;
      await topology.step(Math.sign(fromMs) * (Math.abs(fromMs) + random.below(Math.abs(toMs - fromMs))));
      stage.serves();
      await stage.sleep(stage.lasting(1000, 4000));
      await topology.step(0);
      stage.serves();
      return 2;
    },
  };
}

export const CLOCK_FAULTS: readonly Fault<SteppingClockTopology>[] = [
  redisSteps('the clock of Redis steps forward, and back', 1500, 3_600_000),
  redisSteps('the clock of Redis steps back, and forward', -1500, -3_600_000),
  redisSteps('the clock of Redis steps back by less than a second', -600, -900),
  {
    name: 'the clock of weir steps',
    counts: 'processes with a stepped clock',
    run: async (stage) => {
      const sign = stage.random.oneIn(2) ? 1 : -1;
      let bites = await stage.stepWeirClock(sign * (1000 + stage.random.below(86_400_000)));
      await stage.sleep(stage.lasting(500, 2000));
      bites += await stage.stepWeirClock(0);
      stage.serves();
      return bites;
    },
  },
];
