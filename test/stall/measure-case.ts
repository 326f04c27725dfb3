import { type Attack, type AttackResult, connectionsOf } from '../attack/attacker/attack.js';
import { Attacker } from '../attack/attacker/attacker.js';
import { INNOCENT } from '../attack/policy-texts.js';
import { InnocentCaller, type InnocentResult } from './innocent.js';
import { monotonicMs } from './loop-delay-log.js';
import type { StallCase } from './stall-case.js';
import type { StallServer } from './stall-server.js';

/** High enough that the 99.9th percentile of ten seconds is one of several calls. */
const INNOCENT_RATE = 500;
/** More than one, so that each worker gets some of the connections. */
const INNOCENT_CONNECTIONS = 4;
/** Maximum time until all calls of an attack with a fixed number of calls are answered. */
const MAX_CALLS_MS = 30_000;
/** weir has finished an attack when it uses less than this share of a core. */
const IDLE_SHARE = 0.3;
const POLL_MS = 50;
/** Maximum time until weir has finished an attack. */
const SETTLE_MS = 3000;
/** Share of a core that weir uses for paced attacks and the innocent caller together. */
const PACED_SHARE = 0.6;
/** The rate of paced attacks at the beginning, and the interval in which it is adjusted. */
const FIRST_CALLS_PER_SECOND = 100;
const ADJUST_MS = 250;
/** Share of a measurement in which the rate is adjusted before the innocent caller's latencies count. */
const WARM_UP_SHARE = 0.3;

/** Effects of one attack on weir and on the innocent caller. */
export interface Measurement {
  readonly name: string;
  readonly connections: number;
  /** Amount of attack data that the kernel accepted. */
  readonly kilobytes: number;
  /** Share of a core that weir used during the attack. */
  readonly coreShare: number;
  /** Longest delay of the event loop, without the time in which the thread waited for a core. */
  readonly delayMs: number;
  /** Longest delay of the event loop, including the time in which the thread waited for a core. */
  readonly delayWallMs: number;
  readonly innocent: InnocentResult;
  /** The innocent caller before and after a paced attack. */
  readonly quiet: readonly [InnocentResult, InnocentResult] | undefined;
  readonly answers: AttackResult['answers'];
  readonly answerFailures: readonly string[];
  /** Whether weir had finished the attack before the attacker closed its connections. */
  readonly settled: boolean;
  readonly alive: boolean;
}

/** An attacker and the innocent caller. */
export class StallBench {
  readonly #attacker = new Attacker();
  readonly #innocent = new InnocentCaller();

  /** Measures an attack of `ms`. Before and after a paced attack, it measures the innocent caller alone. */
  async measure(server: StallServer, one: StallCase, ms: number): Promise<Measurement> {
    if (one.isPaced !== true) return this.#attack(server, one, ms);
    const before = await this.#alone(server, ms);
    const measured = await this.#attack(server, one, ms);
    return { ...measured, quiet: [before, await this.#alone(server, ms)] };
  }

  async #alone(server: StallServer, ms: number): Promise<InnocentResult> {
    await this.#begin(server);
    await pause(ms);
    return this.#innocent.end();
  }

  /** Resolves when the innocent caller has all answers and the attacker's connections are closed. */
  async #attack(
    server: StallServer,
    { name, attacks, background, isPaced = false, failuresOf }: StallCase,
    ms: number,
  ): Promise<Measurement> {
    const orders = (attacks?.() ?? []).map((attack) => ({ attack, port: portOf(server, attack) }));
    const hasFixedCalls = orders.some(({ attack }) => attack.kind === 'grpc' && attack.calls !== undefined);
    const warmUpMs = isPaced ? ms * WARM_UP_SHARE : 0;
    const attackMs = hasFixedCalls ? MAX_CALLS_MS : warmUpMs + ms;
    if (!isPaced) await this.#begin(server);
    let start = monotonicMs();
    let cpuBefore = server.cpuMicros();
    let ended = false;
    const backgroundWork = background?.(server, () => ended);
    const attacking =
      orders.length > 0 ? this.#attacker.attack({ attacks: orders, ms: attackMs, isPaced }) : pause(ms);
    const pacing = isPaced ? this.#adjustPace(server, () => ended) : undefined;
    if (isPaced) {
      await pause(warmUpMs);
      await this.#begin(server);
      start = monotonicMs();
      cpuBefore = server.cpuMicros();
    }
    await attacking;
    ended = true;
    const coreShare = (server.cpuMicros() - cpuBefore) / 1000 / (monotonicMs() - start);
    const backgroundBytes = (await backgroundWork) ?? 0;
    await pacing;
    const settled = await settle(server);
    const result = orders.length === 0 ? { bytes: 0, opened: 0, answers: {} } : await this.#attacker.finish();
    const innocent = await this.#innocent.end();
    // loop-delay.ts writes the last delay after the last answer.
    await pause(10);
    const { ownMs, wallMs } = server.longestDelay(start);
    // An event loop that is still blocked has not written its delay yet.
    const isStuck = innocent.unanswered > 0 && innocent.failure === undefined;
    const stuckMs = isStuck ? monotonicMs() - start : 0;
    return {
      ...{ name, coreShare, innocent, settled, quiet: undefined },
      connections: orders.reduce((sum, { attack }) => sum + connectionsOf(attack), 0),
      kilobytes: (result.bytes + backgroundBytes) / 1024,
      delayMs: Math.max(ownMs, stuckMs),
      delayWallMs: wallMs,
      answers: result.answers,
      answerFailures: failuresOf?.(result) ?? [],
      alive: server.weir.process.isRunning(),
    };
  }

  /**
   * Adjusts the rate of paced attacks until they end. Time in which weir waited for a core counts as used, because the
   * attacks would otherwise take all of a busy machine.
   */
  async #adjustPace(server: StallServer, ended: () => boolean): Promise<void> {
    let callsPerSecond = FIRST_CALLS_PER_SECOND;
    while (!ended()) {
      this.#attacker.setPace({ callsPerSecond });
      const start = monotonicMs();
      const before = server.demandMicros();
      await pause(ADJUST_MS);
      const share = (server.demandMicros() - before) / 1000 / (monotonicMs() - start);
      callsPerSecond *= Math.min(2, Math.max(0.5, PACED_SHARE / share));
    }
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
