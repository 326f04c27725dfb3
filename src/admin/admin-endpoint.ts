import { isUtf8 } from 'node:buffer';
import { EVENTS_TYPE, type EventFeed } from '../http/event-feed.js';
import type { HttpAnswer, HttpCall, HttpEndpoint, HttpHead } from '../http/http.js';
import {
  type AdminCaller,
  type AdminRight,
  adminAnswer,
  adminRefusal,
  type DebugPortAccess,
} from './admin-access.js';

/** Maximum bytes of a question. */
export const MAX_QUESTION_BYTES = 32 * 1024;
const APPLICATION_JSON = /^application\/json[\t ]*(?:;[\t ]*charset="?utf-8"?[\t ]*)?$/i;

const ASKS_EVENTS = /(?:^|[\s,])text\/event-stream(?:[\s;,]|$)/i;

export interface AdminAnswer {
  readonly status: number;
  /** Sent as JSON. */
  readonly body: object;
}

/** A service of the debug port for operators. */
export interface AdminService {
  readonly path: string;
  /** Line for the list of endpoints. */
  readonly help: string;
  /** Returns the right that a question requires. The question is not validated yet. */
  rightFor(question: unknown): AdminRight;
  answer(question: unknown, caller: AdminCaller, call: HttpCall): AdminAnswer | Promise<AdminAnswer>;
  /**
   * Returns an event stream for callers that accept one (`accept: text/event-stream`), or an answer if it is not
   * available.
   */
  feed?(question: unknown, caller: AdminCaller): EventFeed | AdminAnswer;
}

/**
 * Returns the endpoint of a service. Questions and answers are JSON, and only POST is accepted, so that no question
 * appears in a URL and thus in a log. Errors are answered as `{"error": "…"}`.
 */
export function adminEndpoint(service: AdminService, access: Pick<DebugPortAccess, 'check'>): HttpEndpoint {
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
      if (question === undefined) return adminRefusal(400, 'the body must be valid JSON in UTF-8');
      const caller = access.check(call, service.rightFor(question));
      if ('status' in caller) return caller;
      const feed = ASKS_EVENTS.test(call.headers.accept ?? '') ? service.feed?.(question, caller) : undefined;
      const answer = feed ?? (await service.answer(question, caller, call));
      if ('follow' in answer) {
        const isStill = (): boolean => !('status' in access.check(call, 'read'));
        return eventsAnswer(whileAllowed(answer, isStill));
      }
      const { status, body } = answer;
      return adminAnswer(status, `${JSON.stringify(body, null, 2)}\n`);
    },
  };
}

/** Returns an event stream with headers that keep proxies, such as nginx, from buffering events. */
function eventsAnswer(body: EventFeed): HttpAnswer {
  return {
    status: 200,
    contentType: EVENTS_TYPE,
    body,
    headers: { 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  };
}

/** Returns the stream, which ends when the caller loses its right, for example because its token was removed. */
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
  if (query.size > 0)
    return adminRefusal(400, 'the URL must not contain a query; send the fields in the body');
  if (APPLICATION_JSON.test(headers['content-type'] ?? '')) return undefined;
  return adminRefusal(415, 'the body must be JSON; send the header "content-type: application/json"');
}

function parse(bytes: Buffer): unknown {
  // Invalid bytes would all be decoded as the same character, so that a question could name another caller.
  if (!isUtf8(bytes)) return undefined;
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}
