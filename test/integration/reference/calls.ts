import { createClientCodec } from '../../../src/codec/client-codec.js';
import type { Descriptor, DescriptorStatus } from '../../../src/codec/messages.js';
import { LIMIT_UNIT } from '../../../src/codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import type { RawClient } from '../../support/grpc/grpc-client.js';
import { entries } from '../../support/policy/policies.js';
import {
  type Answer,
  type Ask,
  type CallStep,
  type HealthStep,
  type HttpStep,
  type Status,
  UNIT_SECONDS,
  type Unit,
} from './case.js';

const codec = createClientCodec();
const HEALTH_CHECK = '/grpc.health.v1.Health/Check';
const HEALTH_STATES: Readonly<Record<number, string>> = { 1: 'SERVING', 2: 'NOT_SERVING' };
const NO_ANSWER_MS = 15_000;

/** The actual and the expected result of a step, in the same form. */
export interface Comparison {
  readonly actual: unknown;
  readonly expected: unknown;
}

/** The seconds until a window ends, before and after a call; a reset must be between the two. */
class ResetBounds {
  readonly #sentAt: number;
  readonly #answeredAt: number;

  constructor(sentAt: number, answeredAt: number) {
    this.#sentAt = sentAt;
    this.#answeredAt = answeredAt;
  }

  /** Returns `<reset>` for a correct number, and otherwise the number itself. */
  read(seconds: number | undefined, unit: Unit): string {
    const length = UNIT_SECONDS[unit];
    const most = length - (Math.floor(this.#sentAt / 1000) % length);
    const least = length - (Math.floor(this.#answeredAt / 1000) % length);
    // The clocks of the server and of Redis are read between ours, but rounded separately.
    if (seconds !== undefined && seconds <= most && seconds >= Math.max(least - 1, 1)) return '<reset>';
    return `${seconds} (of ${least} to ${most})`;
  }
}

function unitOf(limit: string): Unit {
  return limit.split('/')[1] as Unit;
}

function unitName(unit: number): string {
  return Object.entries(LIMIT_UNIT).find(([, value]) => value === unit)?.[0] ?? String(unit);
}

/** Converts a descriptor of a case to its message. */
export function descriptorOf(ask: Ask): Descriptor {
  const asked = typeof ask === 'string' ? { entries: ask } : ask;
  const limit = asked.limit?.split('/');
  return {
    entries:
      typeof asked.entries === 'string'
        ? entries(...asked.entries.split(' ').filter((text) => text !== ''))
        : asked.entries.map(([key, value]) => ({ key, value })),
    limit: limit && { requestsPerUnit: Number(limit[0]), unit: LIMIT_UNIT[limit[1] as Unit | 'unknown'] },
    hitsAddend: asked.hits,
    isNegativeHits: asked.negative ?? false,
  };
}

function readStatus(status: DescriptorStatus, bounds: ResetBounds): unknown {
  const limit =
    status.currentLimit && `${status.currentLimit.requestsPerUnit}/${unitName(status.currentLimit.unit)}`;
  return {
    code: ['UNKNOWN', 'OK', 'OVER_LIMIT'][status.code],
    limit,
    name: status.currentLimit?.name ?? '',
    remaining: status.limitRemaining,
    reset:
      limit === undefined
        ? status.durationUntilResetSeconds
        : bounds.read(status.durationUntilResetSeconds, unitOf(limit)),
  };
}

function expectStatus({ over, limit, name, remaining }: Status): unknown {
  return {
    code: over ? 'OVER_LIMIT' : 'OK',
    limit,
    name,
    remaining,
    reset: limit === undefined ? undefined : '<reset>',
  };
}

/** Makes the call once, and compares the answer with `wanted`. */
export async function call(
  client: RawClient,
  step: CallStep,
  wanted: Answer,
  { domain, resetOf }: { readonly domain: string; readonly resetOf: Unit | undefined },
): Promise<Comparison> {
  const asks = Array.isArray(step.ask) ? (step.ask as readonly Ask[]) : [step.ask as Ask];
  const message = codec.encodeRequest({
    domain: step.domain ?? domain,
    descriptors: asks.map(descriptorOf),
    hitsAddend: step.hits ?? 0,
  });
  const sentAt = Date.now();
  const reply = await client.unary(SHOULD_RATE_LIMIT_PATH, message, { timeoutMs: NO_ANSWER_MS });
  const bounds = new ResetBounds(sentAt, Date.now());
  if (!('message' in reply)) {
    const actual = { error: { code: reply.code, text: reply.details } };
    if (wanted.error === undefined) return { actual, expected: wanted };
    const { code, text } = wanted.error;
    const right = text instanceof RegExp ? text.test(reply.details) : text === reply.details;
    return { actual, expected: { error: { code, text: right ? reply.details : text } } };
  }
  const response = codec.decodeResponse(reply.message);
  const actual = {
    overall: ['UNKNOWN', 'OK', 'OVER_LIMIT'][response.overallCode],
    statuses: response.statuses.map((status) => readStatus(status, bounds)),
    headers: response.responseHeadersToAdd.map(({ key, value }) =>
      /reset$/i.test(key) && resetOf !== undefined
        ? [key, bounds.read(Number(value), resetOf)]
        : [key, value],
    ),
    requestHeaders: response.requestHeadersToAdd,
    metadata: readMetadata(response.dynamicMetadata),
  };
  if (wanted.error !== undefined) return { actual, expected: wanted };
  const statuses = wanted.statuses ?? [];
  return {
    actual,
    expected: {
      overall: wanted.overall ?? (statuses.some(({ over }) => over) ? 'OVER_LIMIT' : 'OK'),
      statuses: statuses.map(expectStatus),
      headers: wanted.headers ?? [],
      requestHeaders: [],
      metadata: wanted.metadata,
    },
  };
}

/** Writers of the text form of protobuf messages use one space or two. */
function readMetadata(metadata: unknown): unknown {
  return metadata === undefined
    ? undefined
    : JSON.parse(JSON.stringify(metadata), (key, value: unknown) =>
        key === 'limit' && typeof value === 'string' ? value.replaceAll(/ +/g, ' ') : value,
      );
}

/** Makes one health check. */
export async function checkHealth(
  client: RawClient,
  service: string,
  is: HealthStep['is'],
): Promise<Comparison> {
  const name = Buffer.from(service);
  const message = name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a, name.length]), name]);
  const reply = await client.unary(HEALTH_CHECK, message, { timeoutMs: NO_ANSWER_MS });
  const actual = 'message' in reply ? HEALTH_STATES[reply.message[1] ?? 0] : reply.code;
  return { actual, expected: is };
}

/** Makes one HTTP request, and compares the fields that the step names. */
export async function request(
  port: number,
  step: HttpStep,
  { domain, resetOf }: { readonly domain: string; readonly resetOf: Unit | undefined },
): Promise<Comparison> {
  const sentAt = Date.now();
  const answer = await fetch(`http://127.0.0.1:${port}${step.http}`, {
    method: step.method ?? (step.body === undefined ? 'GET' : 'POST'),
    ...(step.headers !== undefined && { headers: { ...step.headers } }),
    ...(step.body !== undefined && { body: step.body.replaceAll('<domain>', domain) }),
    signal: AbortSignal.timeout(NO_ANSWER_MS),
  });
  const text = await answer.text();
  const bounds = new ResetBounds(sentAt, Date.now());
  const actual: Record<string, unknown> = { status: answer.status };
  const expected: Record<string, unknown> = { status: step.status };
  if (step.type !== undefined) {
    actual['type'] = answer.headers.get('content-type');
    expected['type'] = step.type;
  }
  if (step.text !== undefined) {
    const right = step.text instanceof RegExp && step.text.test(text);
    actual['text'] = text;
    expected['text'] = right
      ? text
      : step.text instanceof RegExp
        ? step.text
        : step.text.replaceAll('<domain>', domain);
  }
  if (step.json !== undefined) {
    actual['json'] = readJson(text, bounds, resetOf);
    expected['json'] = step.json;
  }
  if (step.lines !== undefined) {
    const lines = text.split('\n');
    const wanted = step.lines.map((line) => line.replaceAll('<domain>', domain));
    actual['missing lines'] = wanted
      .filter((line) => !lines.includes(line))
      .map((line) => `${line} in\n${text}`);
    expected['missing lines'] = [];
  }
  return { actual, expected };
}

function readJson(text: string, bounds: ResetBounds, resetOf: Unit | undefined): unknown {
  try {
    return JSON.parse(text, function (this: { key?: unknown }, key, value: unknown) {
      const isReset =
        (key === 'durationUntilReset' && /^[0-9]+s$/.test(String(value))) ||
        (key === 'value' && /reset$/i.test(String(this.key)));
      return isReset && resetOf !== undefined
        ? bounds.read(Number.parseInt(String(value), 10), resetOf)
        : value;
    });
  } catch {
    return text;
  }
}
