import { isUtf8 } from 'node:buffer';
import { crossSiteReason, dnsRebindingReason, isLoopbackHost } from '../http/cross-site.js';
import { EVENTS_TYPE, type EventFeed } from '../http/event-feed.js';
import { type HttpAnswer, type HttpCall, type HttpEndpoint, type HttpHead, JSON_TYPE } from '../http/http.js';
import { throttledLog } from '../runtime/timers.js';
import type { Logger } from '../telemetry/logger.js';
import type { AdminCounter } from '../telemetry/metrics.js';
import { type AdminToken, MAX_TOKEN_LENGTH, MIN_TOKEN_LENGTH } from './admin-tokens.js';

/** Right of a caller: to read, or also to change; `write` includes `read`. */
export type AdminRight = AdminToken['right'];

/** Identity of an operator or an operator's program. */
export interface AdminCaller {
  /** Name of a token, or `loopback`. */
  readonly by: string;
  /** IP address of the caller. */
  readonly peer: string;
  /** Highest right of the caller. */
  readonly right: AdminRight;
}

/** Tokens in effect. */
export interface AdminTokens {
  find(sent: string): AdminToken | undefined;
}

export interface AdminAccessOptions {
  /** DEBUG_HOST. */
  readonly debugHost: string;
  /** Whether the debug port uses TLS. */
  readonly tls: boolean;
  /** Tokens of ADMIN_TOKENS_FILE; undefined without the file. */
  readonly tokens?: AdminTokens | undefined;
  readonly log: Logger;
  readonly count: AdminCounter;
  monotonicMicros(): number;
}

/** Loopback address of a connection. */
const LOOPBACK_PEER = /^(?:::1|(?:::ffff:)?127(?:\.\d{1,3}){3})$/i;
/** RFC 6750, section 2.1. */
const BEARER = /^bearer +([\x21-\x7e]+)$/i;
const CHALLENGE = { 'www-authenticate': 'Bearer realm="weir"' };
/** Headers that proxies add to requests. */
const PROXY_HEADER = /^(?:forwarded|via|x-real-ip|x-(?:forwarded|envoy)-.*)$/;
/** Maximum number of characters of a header name in a message. */
const MAX_SHOWN = 100;

/** Caches must not store answers to operators. */
function adminAnswer(status: number, body: HttpAnswer['body'], headers?: HttpAnswer['headers']): HttpAnswer {
  return { status, contentType: JSON_TYPE, body, headers: { 'cache-control': 'no-store', ...headers } };
}

/** Returns an answer that refuses a request. `sentence` contains the reason and the remedy. */
function adminRefusal(status: number, sentence: string, headers?: HttpAnswer['headers']): HttpAnswer {
  return adminAnswer(status, `${JSON.stringify({ error: sentence })}\n`, headers);
}

/** Access rules of the debug port. */
export class DebugPortAccess {
  readonly #options: AdminAccessOptions;
  readonly #shouldLog: () => boolean;
  /** Number of refusals since the last log line. */
  #refusals = 0;

  constructor(options: AdminAccessOptions) {
    this.#options = options;
    this.#shouldLog = throttledLog(() => options.monotonicMicros() / 1000);
  }

  /** Returns the caller if it has `right`, otherwise the answer that refuses the request. */
  check(head: HttpHead, right: AdminRight): AdminCaller | HttpAnswer {
    const { tokens } = this.#options;
    const checked =
      this.#otherSite(head) ??
      (tokens === undefined ? this.#onLoopback(head) : withToken(head, tokens, right));
    if ('status' in checked) this.#refused(head, checked);
    return checked;
  }

  /** Refuses requests that a page of another site may have sent through the browser of an operator. */
  #otherSite({ headers }: HttpHead): HttpAnswer | undefined {
    const fault = crossSiteReason(headers, this.#ownSchemes());
    return fault === undefined ? undefined : adminRefusal(403, fault);
  }

  /**
   * Returns the schemes of the page's own address. With tokens, which pages of other sites do not have, a proxy may
   * terminate TLS.
   */
  #ownSchemes(): readonly string[] {
    const { tls, tokens } = this.#options;
    if (tls) return ['https'];
    return tokens === undefined ? ['http'] : ['http', 'https'];
  }

  #onLoopback({ headers, peer }: HttpHead): AdminCaller | HttpAnswer {
    const { debugHost } = this.#options;
    if (!isLoopbackHost(debugHost) || !LOOPBACK_PEER.test(peer)) {
      const where =
        debugHost === '' ? 'DEBUG_HOST is empty, which means all addresses' : `DEBUG_HOST is ${debugHost}`;
      return adminRefusal(
        403,
        `${where}, so other machines can reach this port, but no tokens are configured; set ` +
          'ADMIN_TOKENS_FILE, or set DEBUG_HOST=127.0.0.1',
      );
    }
    const fault = dnsRebindingReason(headers);
    if (fault !== undefined) return adminRefusal(421, `${fault}, or set ADMIN_TOKENS_FILE`);
    const proxied = Object.keys(headers).find((name) => PROXY_HEADER.test(name));
    if (proxied === undefined) return { by: 'loopback', peer, right: 'write' };
    return adminRefusal(
      403,
      `the request came through a proxy (header ${proxied.slice(0, MAX_SHOWN)}), so the caller is ` +
        'unknown; connect to this port directly, or set ADMIN_TOKENS_FILE',
    );
  }

  #refused({ peer }: HttpHead, { status }: HttpAnswer): void {
    const { log, count } = this.#options;
    count('access', 'refused');
    this.#refusals++;
    if (!this.#shouldLog()) return;
    const before = this.#refusals > 1 && { alsoRefused: this.#refusals - 1 };
    log.warn({ peer, status, ...before }, 'refused an administrative request to the debug port');
    this.#refusals = 0;
  }
}

/** Checks a token, which is accepted from any address, because pages of other sites have no token. */
function withToken(
  { headers, peer }: HttpHead,
  tokens: AdminTokens,
  right: AdminRight,
): AdminCaller | HttpAnswer {
  const sent = BEARER.exec(headers.authorization ?? '')?.[1];
  if (sent === undefined) {
    return adminRefusal(
      401,
      'a token is required in the header "authorization: Bearer <token>"; for weir bucket and weir top, ' +
        'set WEIR_ADMIN_TOKEN or use --token-file',
      CHALLENGE,
    );
  }
  if (sent.length < MIN_TOKEN_LENGTH || sent.length > MAX_TOKEN_LENGTH) {
    return adminRefusal(
      401,
      `a token must have ${MIN_TOKEN_LENGTH} to ${MAX_TOKEN_LENGTH} characters, but this token has ` +
        `${sent.length}; create a valid token with weir bucket new-token`,
      CHALLENGE,
    );
  }
  const token = tokens.find(sent);
  if (token === undefined) {
    return adminRefusal(
      401,
      'ADMIN_TOKENS_FILE does not contain this token; use a token that the file lists',
      CHALLENGE,
    );
  }
  if (right === 'read' || token.right === 'write') return { by: token.name, peer, right: token.right };
  return adminRefusal(
    403,
    `the token ${token.name} has only read permission, but this request makes a change; use a token ` +
      'with write permission',
  );
}

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

/** The headers keep proxies, such as nginx, from buffering events. */
function eventsAnswer(body: EventFeed): HttpAnswer {
  return {
    status: 200,
    contentType: EVENTS_TYPE,
    body,
    headers: { 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  };
}

/** The stream ends when the caller loses its right, for example because its token was removed. */
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
