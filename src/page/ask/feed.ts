import { batch } from '@preact/signals';
import type { HistoryPoint, Overview, OverviewAnswer, OverviewCaller } from '../../admin/page/messages.js';
import {
  announcement,
  caller,
  connection,
  connections,
  readPolicies,
  readRates,
  setNow,
  setOverview,
} from '../state.js';
import { type AskFailure, refusal, send } from './client.js';
import { isUsable } from './usable.js';

/*
 * Follows `/overview` while the page is visible, and reconnects after failures. The events are read with fetch, because
 * an EventSource can neither send a token in a header nor report why the server refuses it.
 */

/** Maximum time until the first event. After this time, the page assumes that a proxy buffers the stream. */
const FIRST_EVENT_MS = 10_000;
/** Maximum time between events. The server sends one after each step of the history, every five seconds. */
const SILENCE_MS = 13_000;
const POLL_MS = 5000;
/** Time for which the page polls until it tries a stream again, because the cause of the delay may be over. */
const STREAM_RETRY_MS = 30_000;
/** Browsers open at most six connections to a server for all tabs, so a tab hidden for longer must not hold one. */
const HIDDEN_MS = 5000;
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;

type Outcome = 'ended' | 'no stream' | 'polled' | AskFailure;

let stop = new AbortController();
/** Time at which data last arrived. */
let receivedAt = Date.now();
let failures = 0;
let isConnected = false;
let isUnusable = false;
let hiding: ReturnType<typeof setTimeout> | undefined;

/** Connects again immediately, for example with another token. */
export function restart(): void {
  stop.abort();
  stop = new AbortController();
  failures = 0;
  isConnected = isUnusable = false;
  refusal.value = undefined;
  void follow(stop.signal);
}

/** Pauses while the page stays hidden, and restarts when it is visible again. */
export function checkVisibility(): void {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(pause, HIDDEN_MS);
  else if (connection.value.kind === 'paused') restart();
  else if (isConnected) void readRates();
}

function pause(): void {
  // If the server requires another token, nothing is running.
  if (refusal.value !== undefined) return;
  stop.abort();
  connection.value = { kind: 'paused' };
}

async function follow(stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) {
    let outcome = await stream(stopped);
    // A 503 means that the server has too many streams, but polling still works.
    if (outcome === 'no stream' || statusOf(outcome) === 503) outcome = await pollForAWhile(stopped);
    if (stopped.aborted) return;
    if (outcome === 'polled') continue;
    const pauseMs = Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** Math.min(failures++, 10));
    const status = statusOf(outcome);
    isConnected = false;
    // A 502 or 504 comes from a proxy and does not count as a refusal.
    connection.value =
      typeof outcome === 'string' || (status >= 502 && status <= 504)
        ? { kind: 'lost', since: receivedAt, retryAt: Date.now() + pauseMs }
        : { kind: 'refused', ...outcome };
    // The server's answer stays the same until the token changes.
    if (status === 401) return;
    await sleep(pauseMs);
  }
}

function statusOf(outcome: Outcome): number {
  return typeof outcome === 'object' ? outcome.status : 0;
}

/** Reads events until the stream ends, or until it has been silent for too long. */
async function stream(stopped: AbortSignal): Promise<Outcome> {
  const attempt = new AbortController();
  let isFirst = true;
  let timer = setTimeout(() => attempt.abort(), FIRST_EVENT_MS);
  try {
    const headers = { accept: 'text/event-stream' };
    const response = await send('overview', {}, AbortSignal.any([stopped, attempt.signal]), headers);
    if ('error' in response) return response;
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ''; ; ) {
      const { value, done } = (await reader?.read()) ?? { done: true };
      if (done || stopped.aborted) return 'ended';
      const parts = (rest + value).split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        // Comments prove nothing about the server: a proxy may send comments to keep the connection open.
        const [, type, data] = /^event: (.*)\ndata: (.*)$/m.exec(part) ?? [];
        if (type === undefined || data === undefined) continue;
        isFirst = false;
        clearTimeout(timer);
        timer = setTimeout(() => attempt.abort(), SILENCE_MS);
        receive('live', { [type]: JSON.parse(data) });
      }
    }
  } catch {
    return isFirst && attempt.signal.aborted ? 'no stream' : 'ended';
  } finally {
    clearTimeout(timer);
    attempt.abort();
  }
}

async function pollForAWhile(stopped: AbortSignal): Promise<Outcome> {
  const until = Date.now() + STREAM_RETRY_MS;
  while (Date.now() < until && !stopped.aborted) {
    try {
      const signal = AbortSignal.any([stopped, AbortSignal.timeout(FIRST_EVENT_MS)]);
      const response = await send('overview', {}, signal);
      if ('error' in response) return response;
      const overview = (await response.json()) as OverviewAnswer;
      if (stopped.aborted) return 'ended';
      receive('polling', { caller: overview.caller, overview, point: overview.point });
    } catch {
      return 'ended';
    }
    await sleep(POLL_MS);
  }
  return 'polled';
}

/**
 * Shows data by the type of its event. If the page cannot use it, the page and the server have different versions:
 * reconnecting or polling more often would not help.
 */
function receive(kind: 'live' | 'polling', data: Readonly<Record<string, unknown>>): void {
  receivedAt = Date.now();
  const unusable = Object.keys(data).find((type) => !isUsable(type, data[type]));
  if (unusable !== undefined && !isUnusable) {
    isUnusable = true;
    // For people who look at the console. The page itself shows what to do.
    console.error(new Error(`this page cannot read the event or answer ${unusable} from weir`));
  }
  if (isUnusable) {
    connection.value = { kind: 'unusable' };
    return;
  }
  failures = 0;
  batch(() => {
    connect(kind);
    if (data['caller'] !== undefined) caller.value = data['caller'] as OverviewCaller;
    if (data['overview'] !== undefined) setOverview(data['overview'] as Overview);
    if (data['point'] === undefined) return;
    // The server reports a step when the step ends.
    if (kind === 'live') setNow((data['point'] as HistoryPoint).ends);
    if (!document.hidden) void readRates();
  });
}

function connect(kind: 'live' | 'polling'): void {
  const { kind: before } = connection.value;
  if (before !== kind) connection.value = { kind };
  if (isConnected) return;
  isConnected = true;
  connections.value++;
  void readRates();
  void readPolicies();
  if (before === 'lost' || before === 'refused') announcement.value = 'weir is answering again.';
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
