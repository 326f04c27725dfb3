import { seededRandom } from '../limiter/seeded-random.js';
import type { SimulatedLog } from './simulated-log.js';

/** `json_format` of {@link simulatedLines}. */
export const SIMULATED_JSON_FORMAT = {
  start_time: '%START_TIME%',
  method: '%REQ(:METHOD)%',
  path: '%REQ(:PATH)%',
  tenant: '%REQ(X-TENANT)%',
  request_id: '%REQ(X-REQUEST-ID)%',
  response_code: '%RESPONSE_CODE%',
  duration: '%DURATION%',
} as const;

/** Longest duration of a request, in milliseconds. Most requests are much shorter. */
const MAX_DURATION = 20_000;

/**
 * Returns the JSON lines that Envoy would write for a log, in the order in which requests end. `digits` is the number
 * of digits of a second's fraction: 3, as Envoy writes it by default, or 6.
 */
export function* simulatedLines(log: SimulatedLog, digits: 3 | 6): Generator<string> {
  const random = seededRandom(1);
  let unfinished: { readonly end: number; readonly line: string }[] = [];
  let count = 0;
  for (const requests of log.minutes()) {
    for (const { startMicros, tenant, path } of requests) {
      const duration = Math.ceil(MAX_DURATION ** (random() ** 3));
      const line = JSON.stringify({
        start_time: timeText(startMicros, digits),
        method: 'GET',
        path,
        tenant,
        request_id: (++count).toString(16).padStart(32, '0'),
        response_code: 200,
        duration,
      } satisfies Readonly<Record<keyof typeof SIMULATED_JSON_FORMAT, string | number>>);
      unfinished.push({ end: startMicros + duration * 1000, line });
    }
    unfinished.sort((a, b) => a.end - b.end);
    const now = requests.at(-1)?.startMicros ?? Number.NEGATIVE_INFINITY;
    const waiting = unfinished.findIndex(({ end }) => end > now);
    const ended = waiting < 0 ? unfinished.length : waiting;
    for (const { line } of unfinished.slice(0, ended)) yield line;
    unfinished = unfinished.slice(ended);
  }
  for (const { line } of unfinished) yield line;
}

function timeText(micros: number, digits: 3 | 6): string {
  const whole = new Date(Math.floor(micros / 1000)).toISOString();
  if (digits === 3) return whole;
  return `${whole.slice(0, -1)}${String(Math.floor(micros % 1000)).padStart(3, '0')}Z`;
}
