import { readFileSync } from 'node:fs';
import { RATE_LIMIT_CONFIG_TYPE } from '../../src/config/xds/discovery.js';
import { INNOCENT, innocentPolicy } from '../attack/policy-texts.js';
import { cpuMicrosOfAll } from '../bench/cpu.js';
import { closeLater } from '../support/process/close-later.js';
import { TempDir } from '../support/process/temp-dir.js';
import { untilHealthy } from '../support/process/until-healthy.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { AdsServer } from '../support/xds/ads-server.js';
import { encodeConfig } from '../support/xds/xds-server.js';
import { type LoopDelay, longestDelay, recordedPids, recordingSettings } from './loop-delay-log.js';

/** Start options of the server for a group of cases. */
export interface ServerSetup {
  readonly name: string;
  /** Policy files by name, in addition to the innocent caller's. */
  readonly files: Readonly<Record<string, string>>;
  readonly env?: NodeJS.ProcessEnv;
  /** Whether weir uses its own Redis. */
  readonly redis?: boolean;
  /** Whether policies come from a management server instead of files. */
  readonly xds?: boolean;
  /** Whether the test reads weir's standard output. Defaults to true. */
  readonly readsOutput?: boolean;
  /** Prepares the server for the first case, for example with calls that create series. */
  prepare?(server: StallServer): Promise<void>;
}

/** Maximum time for a start. Long, because earlier attacks may keep the machine busy. */
const START_MS = 60_000;

/** A weir server whose event loops are monitored from inside. */
export class StallServer {
  readonly weir: WeirServer;
  /** Policy files. weir reloads a file after a change. */
  readonly policies: TempDir;
  /** The management server, if `setup.xds` is true. */
  readonly ads: AdsServer | undefined;
  private readonly delays: TempDir;

  private constructor(weir: WeirServer, policies: TempDir, delays: TempDir, ads: AdsServer | undefined) {
    this.weir = weir;
    this.policies = policies;
    this.delays = delays;
    this.ads = ads;
  }

  static async start(setup: ServerSetup): Promise<StallServer> {
    const policies = new TempDir();
    const delays = new TempDir();
    policies.write(`${INNOCENT}.yaml`, innocentPolicy());
    for (const [name, text] of Object.entries(setup.files)) policies.write(name, text);
    const redis = setup.redis === true ? await startRedis() : undefined;
    const ads = setup.xds === true ? await new AdsServer().start() : undefined;
    const from =
      ads === undefined
        ? { CONFIG_PATH: policies.path }
        : { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${ads.port}` };
    const weir = await startWeir({
      untilHealthy: false,
      readsOutput: setup.readsOutput !== false,
      env: {
        ...from,
        ...(redis !== undefined && { REDIS_URL: `127.0.0.1:${redis.port}` }),
        ...recordingSettings(delays.path),
        ...setup.env,
      },
    });
    const server = new StallServer(weir, policies, delays, ads);
    // The remaining work does not matter at the end.
    closeLater(weir, () => weir.stop('SIGKILL'));
    if (ads !== undefined) await server.sendFirstPolicies(ads);
    await untilHealthy('weir', weir.process, weir.httpPort, START_MS);
    await setup.prepare?.(server);
    return server;
  }

  /** Returns the CPU time of weir and its workers so far. */
  cpuMicros(): number {
    return recordedPids(this.delays.path).reduce((sum, pid) => sum + cpuOf(pid), 0);
  }

  /** Returns {@link cpuMicros}, and the time in which the main thread waited for a core. */
  demandMicros(): number {
    const { pid } = this.weir.process;
    const waited = Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[1]);
    return this.cpuMicros() + waited / 1000;
  }

  longestDelay(sinceMs: number): LoopDelay {
    return longestDelay(this.delays.path, sinceMs);
  }

  private async sendFirstPolicies(ads: AdsServer): Promise<void> {
    const peer = await waitFor('weir to ask for its policies', () => ads.peers[0]);
    const config = {
      name: INNOCENT,
      domain: INNOCENT,
      descriptors: [{ key: 'caller', rate_limit: { unit: 'DAY', requests_per_unit: 4_000_000_000 } }],
    };
    peer.send({
      versionInfo: 'first',
      typeUrl: RATE_LIMIT_CONFIG_TYPE,
      nonce: 'first',
      resources: [{ type_url: RATE_LIMIT_CONFIG_TYPE, value: encodeConfig(config).bytes }],
    });
  }
}

/** Returns the CPU microseconds of a process, or 0 if the process has ended. */
function cpuOf(pid: number): number {
  try {
    return cpuMicrosOfAll(pid);
  } catch {
    return 0;
  }
}
