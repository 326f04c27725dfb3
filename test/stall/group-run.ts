import { delaysOf, failuresOf } from './failures.js';
import { StallBench } from './measure-case.js';
import type { StallCase, StallGroup } from './stall-case.js';
import { StallServer } from './stall-server.js';
import type { Row } from './table.js';

export interface RunOptions {
  /** Duration of each attack. */
  readonly ms: number;
  /** Whether a case fails if its delays are too long. */
  readonly judgesDelays: boolean;
  /** Called when a server has started. */
  readonly started?: (server: StallServer) => void;
}

/** Runs the cases of a group one after the other. Restarts the server if an attack broke it. */
export class GroupRun {
  private readonly group: StallGroup;
  private readonly options: RunOptions;
  private readonly bench = new StallBench();
  private server: StallServer | undefined;

  constructor(group: StallGroup, options: RunOptions) {
    this.group = group;
    this.options = options;
  }

  async run(one: StallCase): Promise<Row> {
    const { ms, judgesDelays } = this.options;
    const server = this.server?.weir.process.isRunning() === true ? this.server : await this.start();
    const measured = await this.bench.measure(server, one, ms);
    // A busy or broken server would falsify the next measurement.
    const { alive, settled, innocent } = measured;
    if (!alive || !settled || innocent.failure !== undefined || innocent.unanswered > 0)
      await server.weir.stop('SIGKILL');
    const delays = judgesDelays ? delaysOf(measured) : [];
    return { measured, failures: [...failuresOf(measured), ...delays] };
  }

  async start(): Promise<StallServer> {
    this.server = await StallServer.start(this.group.setup);
    this.options.started?.(this.server);
    return this.server;
  }
}
