import type { Attack, AttackResult } from './attack/attack.js';
import { Attacker } from './attack/attacker.js';
import { InnocentCaller, type InnocentResult } from './innocent.js';
import { monotonicMs } from './loop-delay-log.js';
import { INNOCENT } from './policy-texts.js';
import type { StallCase } from './stall-case.js';
import type { StallServer } from './stall-server.js';

const INNOCENT_RATE = 200;
/** More than one, so that each worker gets some of the connections. */
const INNOCENT_CONNECTIONS = 4;
const WARM_UP_MS = 300;
const BASELINE_SAMPLES = 4;
const BASELINE_MS = 150;
/** Maximum cost of the innocent caller, in CPU microseconds per second. A higher value means weir is still starting. */
const MAX_BASELINE = 60_000;
/** weir has finished an attack when it uses less than this share of a core. */
const IDLE_SHARE = 0.3;
const POLL_MS = 50;
/** Maximum time until weir has finished an attack. */
const SETTLE_MS = 3000;

/** Effects of one attack on weir and on the innocent caller. */
export interface Measurement {
  readonly name: string;
  readonly connections: number;
  /** Amount of attack data that the kernel accepted. */
  readonly kilobytes: number;
  /** CPU time of weir without the share of the innocent caller. */
  readonly cpuMicros: number;
  readonly microsPerKilobyte: number;
  /** Longest delay of the event loop, without the time in which the thread waited for a core. */
  readonly delayMs: number;
  /** Longest delay of the event loop, including the time in which the thread waited for a core. */
  readonly delayWallMs: number;
  readonly innocent: InnocentResult;
  readonly answers: AttackResult['answers'];
  /** Whether weir had finished the attack before the attacker closed its connections. */
  readonly settled: boolean;
  readonly alive: boolean;
}

/** An attacker and the innocent caller. Close it after use. */
export class StallBench {
  readonly #attacker = new Attacker();
  readonly #innocent = new InnocentCaller();

  /**
   * Returns the CPU microseconds per second that a server needs for the innocent caller alone. Returns the lowest of
   * several samples, because a server that has just started also does other work.
   */
  async baseline(server: StallServer): Promise<number> {
    await this.#begin(server);
    await pause(WARM_UP_MS);
    let least = Number.POSITIVE_INFINITY;
    for (let sample = 0; sample < BASELINE_SAMPLES; sample++) {
      const before = server.cpuMicros();
      const start = monotonicMs();
      await pause(BASELINE_MS);
      least = Math.min(least, (server.cpuMicros() - before) / ((monotonicMs() - start) / 1000));
    }
    await this.#innocent.end();
    return Math.min(least, MAX_BASELINE);
  }

  /** Attacks for `ms`. Resolves when the innocent caller has all answers and the attacker's connections are closed. */
  async measure(
    server: StallServer,
    { name, attack, background }: StallCase,
    connections: number,
    ms: number,
    baseline: number,
  ): Promise<Measurement> {
    await this.#begin(server);
    const start = monotonicMs();
    const cpuBefore = server.cpuMicros();
    let ended = false;
    const backgroundWork = background?.(server, () => ended);
    const order = attack?.();
    if (order !== undefined) {
      await this.#attacker.attack({ attack: order, connections, ms, port: portOf(server, order) });
    } else await pause(ms);
    ended = true;
    const backgroundBytes = (await backgroundWork) ?? 0;
    const settled = await settle(server);
    const result = order === undefined ? { bytes: 0, opened: 0, answers: {} } : await this.#attacker.finish();
    const innocent = await this.#innocent.end();
    // loop-delay.ts writes the last delay after the last answer.
    await pause(10);
    const seconds = (monotonicMs() - start) / 1000;
    const cpuMicros = Math.max(0, server.cpuMicros() - cpuBefore - baseline * seconds);
    const kilobytes = (result.bytes + backgroundBytes) / 1024;
    const { ownMs, wallMs } = server.longestDelay(start);
    // An event loop that is still blocked has not written its delay yet.
    const isStuck = innocent.unanswered > 0 && innocent.failure === undefined;
    const stuckMs = isStuck ? monotonicMs() - start : 0;
    return {
      ...{ name, connections, kilobytes, cpuMicros, innocent, settled },
      microsPerKilobyte: kilobytes === 0 ? 0 : cpuMicros / kilobytes,
      delayMs: Math.max(ownMs, stuckMs),
      delayWallMs: wallMs,
      answers: result.answers,
      alive: server.weir.process.isRunning(),
    };
  }

  async close(): Promise<void> {
    await Promise.all([this.#attacker.close(), this.#innocent.close()]);
  }

  #begin(server: StallServer): Promise<void> {
    return this.#innocent.begin({
      port: server.weir.grpcPort,
      domain: INNOCENT,
      rate: INNOCENT_RATE,
      connections: INNOCENT_CONNECTIONS,
    });
  }
}

function portOf({ weir }: StallServer, attack: Attack): number {
  if (attack.kind !== 'http') return weir.grpcPort;
  return attack.port === 'debug' ? weir.debugPort : weir.httpPort;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until weir has finished its work. Returns false after SETTLE_MS. */
async function settle(server: StallServer): Promise<boolean> {
  const last = monotonicMs() + SETTLE_MS;
  while (monotonicMs() < last) {
    const before = server.cpuMicros();
    await pause(POLL_MS);
    if ((server.cpuMicros() - before) / 1000 < POLL_MS * IDLE_SHARE) return true;
  }
  return false;
}
