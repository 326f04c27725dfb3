import { CLOCK_FAULTS } from './faults/clock-faults.js';
import { CLUSTER_FAULTS } from './faults/cluster-faults.js';
import { FAILOVER_FAULTS } from './faults/failover-faults.js';
import { LOGIN_FAULTS } from './faults/login-faults.js';
import { PROCESS_FAULTS } from './faults/process-faults.js';
import { PROXY_FAULTS } from './faults/proxy-faults.js';
import { type RunOptions, type RunResult, runFaults } from './run-faults.js';
import { ClusterTopology } from './topology/cluster-topology.js';
import { SentinelTopology } from './topology/sentinel-topology.js';
import { SingleTopology } from './topology/single-topology.js';
import { SteppingClockTopology } from './topology/stepping-clock-topology.js';
import type { TopologyName } from './topology/topology.js';

/** A topology with its faults. */
export interface Suite {
  readonly name: TopologyName;
  /** Reason why the topology cannot run here; undefined if it can. */
  impossible(): string | undefined;
  /** Names of the topology's faults. */
  readonly faults: readonly string[];
  run(options: RunOptions): Promise<RunResult>;
}

const SINGLE_FAULTS = [...PROCESS_FAULTS, ...LOGIN_FAULTS, ...PROXY_FAULTS];

export const SUITES: readonly Suite[] = [
  {
    name: 'single',
    impossible: () => undefined,
    faults: SINGLE_FAULTS.map(({ name }) => name),
    run: (options) => runFaults((random) => SingleTopology.start(random), SINGLE_FAULTS, options),
  },
  {
    name: 'sentinel',
    impossible: () => undefined,
    faults: FAILOVER_FAULTS.map(({ name }) => name),
    run: (options) => runFaults(() => SentinelTopology.start(), FAILOVER_FAULTS, options),
  },
  {
    name: 'cluster',
    impossible: () => undefined,
    faults: CLUSTER_FAULTS.map(({ name }) => name),
    run: (options) => runFaults((random) => ClusterTopology.start(random), CLUSTER_FAULTS, options),
  },
  {
    name: 'stepping-clock',
    impossible: () =>
      SteppingClockTopology.isPossible()
        ? undefined
        : 'the test cannot step the Redis clock without libfaketime; run "node .ci/tools.mjs stepping-clock"',
    faults: CLOCK_FAULTS.map(({ name }) => name),
    run: (options) => runFaults(() => SteppingClockTopology.start(), CLOCK_FAULTS, options),
  },
];
