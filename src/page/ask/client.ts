import { signal } from '@preact/signals';
import { isUsable } from './usable.js';

/** The reason why a question has no usable answer. */
export interface AskFailure {
  /** HTTP status. 0 if no answer arrived; the server may still have received the question. */
  readonly status: number;
  /** A message for people: one or more whole sentences. */
  readonly error: string;
  /** Whether the server may have carried out the question despite the failure. */
  readonly isMaybeDone: boolean;
}

/** The answer to a question, or the reason why an answer is missing. */
export type AnswerOrFailure<T> =
  | { readonly ok: true; readonly body: T }
  | (AskFailure & { readonly ok: false });

/** Maximum time to wait for an answer, in milliseconds. */
const ANSWER_TIMEOUT_MS = 20_000;
export const UNUSABLE =
  "This page cannot read weir's answer. Another version of weir may be running. Reload the page.";
const NO_TOKEN = 'This server requires a token. The operator of weir lists tokens in ADMIN_TOKENS_FILE.';
/** Endpoints are resolved relative to the path of the page, so a proxy may add a prefix. */
const BASE = location.pathname.replace(/\/?$/, '/');
const STORED = 'weir-token';

/*
 * The page keeps the token in memory. If the user ticks the box, the token is also kept in the session storage of the
 * tab, so that it survives a reload. The browser deletes it with the tab.
 */
/** The token sent with each question, if any. The token is never part of a URL. */
export const token = signal(storedToken());
/** The reason why the server refused the current token, or a missing token. */
export const refusal = signal<string | undefined>(undefined);

/** Returns whether a string can be sent as a token (RFC 6750, 2.1). Browsers reject headers with other characters. */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

function storedToken(): string | undefined {
  try {
    const kept = sessionStorage.getItem(STORED);
    return kept !== null && isToken(kept) ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** Uses a token from now on, or none. `isStored`: whether to keep the token for this tab. */
export function changeToken(wanted: string | undefined, isStored: boolean): void {
  token.value = wanted;
  refusal.value = undefined;
  try {
    if (wanted === undefined || !isStored) sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, wanted);
  } catch {
    // If the browser has no session storage, the page asks for the token again.
  }
}

/** Sends a question of the user, as JSON in a POST request. */
export function ask<T>(path: string, body: object): Promise<AnswerOrFailure<T>> {
  refusal.value = undefined;
  return poll(path, body);
}

/**
 * Sends a question that nobody waits for, in a GET request if it has no body. After the server has refused the token,
 * nothing is sent.
 */
export async function poll<T>(path: string, body?: object): Promise<AnswerOrFailure<T>> {
  const { value: refused } = refusal;
  if (refused !== undefined) return { ok: false, status: 401, error: refused, isMaybeDone: false };
  try {
    const response = await send(path, body, AbortSignal.timeout(ANSWER_TIMEOUT_MS));
    if ('error' in response) return { ok: false, ...response };
    const answer: unknown = await response.json();
    if (isUsable(path, answer)) return { ok: true, body: answer as T };
    return { ok: false, status: response.status, error: UNUSABLE, isMaybeDone: true };
  } catch {
    return { ok: false, status: 0, error: 'weir did not answer.', isMaybeDone: true };
  }
}

/** Sends a request. Resolves with a failure for an answer other than 200, and rejects if no answer arrives. */
export async function send(
  path: string,
  body: object | undefined,
  signal: AbortSignal,
  more: Readonly<Record<string, string>> = {},
): Promise<Response | AskFailure> {
  const sent = token.value;
  const question = body && { method: 'POST', body: JSON.stringify(body) };
  const headers = {
    ...more,
    ...(body && { 'content-type': 'application/json' }),
    ...(sent !== undefined && { authorization: `Bearer ${sent}` }),
  };
  const options = { cache: 'no-store', credentials: 'same-origin' } as const;
  const response = await fetch(BASE + path, { ...question, ...options, headers, signal });
  // The user may have entered another token in the meantime.
  const isCurrent = sent === token.value;
  if (response.ok) {
    if (isCurrent) refusal.value = undefined;
    return response;
  }
  const failure = failureOf(await response.text().catch(() => ''), response.status);
  if (response.status !== 401) return failure;
  // The rest of the message is about programs that send the token.
  const said = failure.error
    .replace(/;[^;]*$/, '')
    .replace(/^a /, 'A ')
    .replace(/\.?$/, '.');
  const error = sent === undefined ? NO_TOKEN : said;
  if (isCurrent) refusal.value = error;
  return { ...failure, error };
}

/** Returns a failure with the server's message, or with a description of an answer from a proxy. */
function failureOf(text: string, status: number): AskFailure {
  try {
    const { error, maybe_done: maybeDone } = JSON.parse(text) as { error?: unknown; maybe_done?: unknown };
    if (typeof error === 'string' && error !== '') {
      // An unexpected error of weir may have occurred after the change was made.
      return { status, error, isMaybeDone: maybeDone === true || status === 500 };
    }
  } catch {
    // The text is not JSON.
  }
  const error =
    status === 404
      ? 'This address does not exist (status 404). The server may be running an older version of weir or ' +
        'another program.'
      : `The response has status ${status} and contains no error message from weir. A proxy between this ` +
        'page and weir may have sent the response.';
  // A proxy may have forwarded the question before it failed.
  return { status, error, isMaybeDone: status >= 500 };
}
