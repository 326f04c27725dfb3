import { CODE } from '../../../src/codec/messages.js';
import { decodeToken } from '../../../src/service/holds/hold-token.js';
import { Decider, descriptor } from '../policy/decider.js';
import { seededRandom } from './seeded-random.js';

/** Settings of a simulation. Times are in seconds. */
export interface LlmCallers {
  /** The `rate_limit` of all calls. Each call sends its use when it starts, which `from: first_call` holds. */
  readonly rateLimit: object;
  readonly callers: number;
  /** Mean and standard deviation of the logarithm of the uses. */
  readonly logMean: number;
  readonly logDeviation: number;
  readonly callSeconds: number;
  readonly retrySeconds: number;
  readonly seconds: number;
}

/** A call that was allowed. Times are in seconds. */
export interface SimulatedCall {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly used: number;
  /** Hits that this call and the other calls in flight at its start use above their estimates. */
  readonly overshoot: number;
}

interface Caller {
  readonly random: () => number;
  /** Time of the next start or end. */
  at: number;
  used: number;
  /** The call in flight: its token, and its use above its estimate. */
  token: string | undefined;
  over: number;
}

/**
 * Simulates callers that each make one call at a time, with lognormal uses. A denied call comes back until it is
 * allowed. Each caller has its own seed for its times and uses. Returns the allowed calls, in order.
 */
export function simulateCalls(options: LlmCallers): readonly SimulatedCall[] {
  const { rateLimit, callSeconds, retrySeconds } = options;
  const descriptors = [{ key: 'tenant', rate_limit: rateLimit }];
  const decider = new Decider(JSON.stringify({ domain: 'd', descriptors }));
  const calls: SimulatedCall[] = [];
  const callers = Array.from({ length: options.callers }, (_, i): Caller => {
    const random = seededRandom(1000 + i);
    return { random, at: i / 1000, used: useOf(random, options), token: undefined, over: 0 };
  });
  let overshoot = 0;
  const start = (caller: Caller): void => {
    const { at, used, random } = caller;
    const answer = decider.answer([descriptor(['tenant=acme'], { hitsAddend: used })]);
    if (answer.overallCode !== CODE.OK) {
      caller.at += retrySeconds * (0.5 + random());
      return;
    }
    const token = String(answer.dynamicMetadata?.['hold']);
    caller.token = token;
    caller.over = Math.max(0, used - ([...decodeToken(token)][0]?.amount ?? 0));
    caller.at += callSeconds * (0.5 + random());
    overshoot += caller.over;
    calls.push({ startedAt: at, endedAt: caller.at, used, overshoot });
  };
  const end = (caller: Caller): void => {
    decider.answer([descriptor([`hold=${caller.token}`], { hitsAddend: caller.used })]);
    overshoot -= caller.over;
    caller.token = undefined;
    caller.used = useOf(caller.random, options);
    caller.at += 0.001;
  };
  for (let now = 0; now < options.seconds; ) {
    const next = callers.reduce((first, caller) => (caller.at < first.at ? caller : first));
    decider.clock.advance(Math.round((next.at - now) * 1e6));
    now = next.at;
    if (next.token === undefined) start(next);
    else end(next);
    // The observer would collect every decision.
    decider.observer.told.length = 0;
    decider.observer.descriptors.length = 0;
  }
  return calls;
}

/** Returns a lognormal use (Box and Muller). */
function useOf(random: () => number, { logMean, logDeviation }: LlmCallers): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.max(1, Math.round(Math.exp(logMean + logDeviation * normal)));
}
