import { isUtf8 } from 'node:buffer';
import { jsonText, LazyList, LazyObject } from '../config/show/json-text.js';
import { EVENTS_TYPE, type EventFeed } from '../http/event-feed.js';
import type { HttpAnswer, HttpCall, HttpEndpoint, HttpHead } from '../http/http.js';
import { PageBufferPool } from '../http/views/page-buffer-pool.js';
import { TextView } from '../http/views/text-view.js';
import type { ViewSlices } from '../http/views/view-slices.js';
import {
  type AdminAccess,
  type AdminCaller,
  type AdminRight,
  adminAnswer,
  adminRefusal,
} from './admin-access.js';

/** Most bytes of a question, and how deep its lists and objects may lie: to read it takes well below a millisecond. */
export const MAX_QUESTION_BYTES = 32 * 1024;
export const MAX_QUESTION_DEPTH = 8;
const APPLICATION_JSON = /^application\/json[\t ]*(?:;[\t ]*charset="?utf-8"?[\t ]*)?$/i;

const ASKS_EVENTS = /(?:^|[\s,])text\/event-stream(?:[\s;,]|$)/i;

/** What a question is answered. */
export interface AdminAnswer {
  readonly status: number;
  /** Sent as JSON, item by item of its lists: an item is to be small. */
  readonly body: object;
}

/** What can be asked of the debug port by those who administer weir. */
export interface AdminService {
  readonly path: string;
  /** One line for the list of endpoints. */
  readonly help: string;
  /** The right that a question needs, a JSON value that nothing is known of yet. */
  rightFor(question: unknown): AdminRight;
  answer(question: unknown, caller: AdminCaller, call: HttpCall): AdminAnswer | Promise<AdminAnswer>;
  /**
   * Events in the place of an answer, for those who say that they read them (`accept: text/event-stream`); an answer
   * where there are none to be had.
   */
  feed?(question: unknown, caller: AdminCaller): EventFeed | AdminAnswer;
}

/**
 * The endpoint of a service: questions and answers are JSON, in POST only, with nothing in the URL, as URLs stand in
 * logs. What is wrong is answered as `{"error": "…"}`.
 */
export function adminEndpoint(service: AdminService, access: AdminAccess, slices: ViewSlices): HttpEndpoint {
  const memory = new PageBufferPool();
  return {
    path: service.path,
    help: service.help,
    maxBodyBytes: MAX_QUESTION_BYTES,
    failed: adminRefusal,
    refuse(head) {
      const caller = access.check(head, 'read');
      return 'status' in caller ? caller : malformed(head);
    },
    async answer(call) {
      const question = parse(call.body);
      if (question === undefined)
        return adminRefusal(400, 'the body is no JSON in UTF-8, or lists and objects lie too deep');
      const caller = access.check(call, service.rightFor(question));
      if ('status' in caller) return caller;
      const feed = ASKS_EVENTS.test(call.headers.accept ?? '') ? service.feed?.(question, caller) : undefined;
      const answer = feed ?? (await service.answer(question, caller, call));
      if ('follow' in answer) {
        const isStill = (): boolean => !('status' in access.check(call, 'read'));
        return eventsAnswer(whileAllowed(answer, isStill));
      }
      const { status, body } = answer;
      const text = new TextView(slices, () => pieces(body), memory);
      return adminAnswer(status, await text.text());
    },
  };
}

/** Proxies are not to gather events before they pass them on; nginx has to be told. */
function eventsAnswer(body: EventFeed): HttpAnswer {
  return {
    status: 200,
    contentType: EVENTS_TYPE,
    body,
    headers: { 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  };
}

/** The feed, until whoever follows it may not any more: a token may be taken back. */
function whileAllowed(feed: EventFeed, isStill: () => boolean): EventFeed {
  return {
    follow(send, end) {
      return feed.follow((event) => {
        if (isStill()) send(event);
        else end();
      }, end);
    },
  };
}

function malformed({ method, headers, query }: HttpHead): HttpAnswer | undefined {
  if (method !== 'POST') return adminRefusal(405, 'use POST', { allow: 'POST' });
  if (query.size > 0) return adminRefusal(400, 'nothing may stand behind a "?": write it into the body');
  if (APPLICATION_JSON.test(headers['content-type'] ?? '')) return undefined;
  return adminRefusal(
    415,
    'the body is to be JSON: send it with the header "content-type: application/json"',
  );
}

function parse(pieces: readonly Buffer[]): unknown {
  const bytes = Buffer.concat(pieces);
  // Other bytes would all be read as the same character, and so name somebody else.
  if (!isUtf8(bytes) || depthOf(bytes) > MAX_QUESTION_DEPTH) return undefined;
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = Buffer.from('"\\[]{}');

/** How deep lists and objects lie in JSON. */
function depthOf(bytes: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let inText = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) inText = !inText;
    else if (inText) {
      if (byte === BACKSLASH) at++;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) deepest = Math.max(deepest, ++depth);
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--;
  }
  return deepest;
}

function* pieces(body: object): Generator<string> {
  const fields = Object.entries(body).map(([name, value]) => [
    name,
    Array.isArray(value) ? new LazyList(value) : value,
  ]);
  yield* jsonText(new LazyObject(Object.fromEntries(fields)));
  yield '\n';
}
