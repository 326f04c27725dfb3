import { crossSiteReason, dnsRebindingReason, isLoopbackHost } from '../http/cross-site.js';
import { type HttpAnswer, type HttpHead, JSON_TYPE } from '../http/http.js';
import type { AdminCounter } from '../telemetry/admin-calls.js';
import type { Logger } from '../telemetry/logger.js';
import { type AdminToken, MAX_TOKEN_LENGTH, MIN_TOKEN_LENGTH } from './admin-tokens.js';

/** What a caller may do: look, or also change; `write` includes `read`. */
export type AdminRight = AdminToken['right'];

/** Who administers weir. */
export interface AdminCaller {
  /** The name of a token, or `loopback`. */
  readonly by: string;
  /** The IP address that the call comes from. */
  readonly peer: string;
  /** The most that the caller may do. */
  readonly right: AdminRight;
}

/** Says who may administer weir through the debug port. */
export interface AdminAccess {
  /** Who calls, if the call may do what `right` is needed for; else what it is answered. */
  check(head: HttpHead, right: AdminRight): AdminCaller | HttpAnswer;
}

/** Knows the tokens in force. */
export interface AdminTokens {
  /** The token that was sent, if it is one of them. */
  find(sent: string): AdminToken | undefined;
}

export interface AdminAccessOptions {
  /** DEBUG_HOST. */
  readonly debugHost: string;
  /** Whether the debug port speaks TLS. */
  readonly tls: boolean;
  /** Those of ADMIN_TOKENS_FILE; absent without one. */
  readonly tokens?: AdminTokens | undefined;
  readonly log: Logger;
  readonly count: AdminCounter;
  monotonicMicros(): number;
}

/** Refusals are logged once in so long, microseconds. */
const LOGGED_MICROS = 10_000_000;
/** Loopback as the address of a connection. */
const LOOPBACK_PEER = /^(?:::1|(?:::ffff:)?127(?:\.\d{1,3}){3})$/i;
/** RFC 6750, section 2.1. */
const BEARER = /^bearer +([\x21-\x7e]+)$/i;
const CHALLENGE = { 'www-authenticate': 'Bearer realm="weir"' };
/** What a proxy adds to the requests of others. */
const PROXY_HEADER = /^(?:forwarded|via|x-real-ip|x-(?:forwarded|envoy)-.*)$/;
/** Most characters of a header's name that are quoted. */
const MAX_SHOWN = 100;

/** An answer of the endpoints that administer weir; caches keep none of them. */
export function adminAnswer(
  status: number,
  body: HttpAnswer['body'],
  headers?: HttpAnswer['headers'],
): HttpAnswer {
  return { status, contentType: JSON_TYPE, body, headers: { 'cache-control': 'no-store', ...headers } };
}

/** The answer to what cannot be done: `sentence` says why, and what to do. */
export function adminRefusal(status: number, sentence: string, headers?: HttpAnswer['headers']): HttpAnswer {
  return adminAnswer(status, `${JSON.stringify({ error: sentence })}\n`, headers);
}

/** The rules of access to what administers weir. */
export class DebugPortAccess implements AdminAccess {
  readonly #options: AdminAccessOptions;
  /** When a refusal may be logged again, and how many were not since the last one. */
  #logAtMicros = Number.NEGATIVE_INFINITY;
  #notLogged = 0;

  constructor(options: AdminAccessOptions) {
    this.#options = options;
  }

  check(head: HttpHead, right: AdminRight): AdminCaller | HttpAnswer {
    const { tokens } = this.#options;
    const checked =
      this.#otherSite(head) ??
      (tokens === undefined ? this.#onLoopback(head) : withToken(head, tokens, right));
    if ('status' in checked) this.#refused(head, checked);
    return checked;
  }

  /** Refuses what a page of another site may have made: the browser that shows it runs on the engineer's machine. */
  #otherSite({ headers }: HttpHead): HttpAnswer | undefined {
    const fault = crossSiteReason(headers, this.#ownSchemes());
    return fault === undefined ? undefined : adminRefusal(403, fault);
  }

  /** Where there are tokens, which no other page has, a proxy may end TLS for browsers. */
  #ownSchemes(): readonly string[] {
    const { tls, tokens } = this.#options;
    if (tls) return ['https'];
    return tokens === undefined ? ['http'] : ['http', 'https'];
  }

  #onLoopback({ headers, peer }: HttpHead): AdminCaller | HttpAnswer {
    const { debugHost } = this.#options;
    if (!isLoopbackHost(debugHost) || !LOOPBACK_PEER.test(peer)) {
      const where =
        debugHost === '' ? 'DEBUG_HOST is empty, which is every address' : `DEBUG_HOST is ${debugHost}`;
      return adminRefusal(
        403,
        `${where}, so other machines may reach this port, and nothing says who of them may administer weir: set ` +
          'ADMIN_TOKENS_FILE, or DEBUG_HOST=127.0.0.1',
      );
    }
    const fault = dnsRebindingReason(headers);
    if (fault !== undefined) return adminRefusal(421, `${fault}, or set ADMIN_TOKENS_FILE`);
    const proxied = Object.keys(headers).find((name) => PROXY_HEADER.test(name));
    if (proxied === undefined) return { by: 'loopback', peer, right: 'write' };
    return adminRefusal(
      403,
      `the call came through a proxy (it has the header ${proxied.slice(0, MAX_SHOWN)}), so it is not known who ` +
        'calls: call this port itself, or set ADMIN_TOKENS_FILE',
    );
  }

  #refused({ peer }: HttpHead, { status }: HttpAnswer): void {
    const { log, count, monotonicMicros } = this.#options;
    count('access', 'refused');
    const now = monotonicMicros();
    if (now < this.#logAtMicros) {
      this.#notLogged++;
      return;
    }
    const before = this.#notLogged > 0 && { alsoRefused: this.#notLogged };
    log.warn({ peer, status, ...before }, 'a call to the debug port that administers weir was refused');
    this.#logAtMicros = now + LOGGED_MICROS;
    this.#notLogged = 0;
  }
}

/** From any address: no page of another site has a token to send. */
function withToken(
  { headers, peer }: HttpHead,
  tokens: AdminTokens,
  right: AdminRight,
): AdminCaller | HttpAnswer {
  const sent = BEARER.exec(headers.authorization ?? '')?.[1];
  if (sent === undefined) {
    return adminRefusal(
      401,
      'a token is needed, in the header "authorization: Bearer <token>"; weir bucket and weir top take it from ' +
        'WEIR_ADMIN_TOKEN or --token-file',
      CHALLENGE,
    );
  }
  if (sent.length < MIN_TOKEN_LENGTH || sent.length > MAX_TOKEN_LENGTH) {
    return adminRefusal(
      401,
      `a token has ${MIN_TOKEN_LENGTH} to ${MAX_TOKEN_LENGTH} characters, and that one has ${sent.length}; weir ` +
        'bucket new-token makes a good one',
      CHALLENGE,
    );
  }
  const token = tokens.find(sent);
  if (token === undefined) {
    return adminRefusal(401, 'the token is not one of ADMIN_TOKENS_FILE, or not any more', CHALLENGE);
  }
  if (right === 'read' || token.right === 'write') return { by: token.name, peer, right: token.right };
  return adminRefusal(
    403,
    `the token ${token.name} may read only, and this changes something: use one with the right write`,
  );
}
