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
const UNUSABLE =
  "This page cannot read weir's answer. Another version of weir may be running. Reload the page.";
const JSON_HEADERS = { 'content-type': 'application/json' };

/** Sends questions to the server that the page was loaded from. */
export class Client {
  #token: string | undefined;
  /** The server's message when it refused the current token or a missing token. */
  #refusal: string | undefined;
  #isActing = false;
  /** Called with the server's message if the server requires a token, or another token. */
  onTokenWanted: (sentence: string) => void = () => {};
  readonly #base: string;

  /** @param path path of the page. Endpoints are resolved relative to this path, so a proxy may add a prefix. */
  constructor(path: string) {
    this.#base = path.endsWith('/') ? path : `${path}/`;
  }

  /** The token sent with each question, if any. The token is never part of a URL. */
  get token(): string | undefined {
    return this.#token;
  }

  set token(token: string | undefined) {
    this.#token = token;
    this.#refusal = undefined;
  }

  /**
   * Records that the user acts, so that questions are sent for the rest of this turn. After the server has refused the
   * token, no other questions are sent: views that ask on their own would reopen the dialog again and again.
   */
  recordUserAction(): void {
    this.#isActing = true;
    setTimeout(() => {
      this.#isActing = false;
    });
  }

  /** Sends a POST request. The caller reads the answer. Rejects if no answer arrives. */
  open(path: string, body: object, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    return this.#fetch(path, {
      method: 'POST',
      headers: { ...JSON_HEADERS, ...headers },
      body: JSON.stringify(body),
      signal,
    });
  }

  /** Sends JSON in a POST request and reads a JSON answer. */
  ask<T>(path: string, body: object): Promise<AnswerOrFailure<T>> {
    return this.#answer(path, () => this.open(path, body, {}, AbortSignal.timeout(ANSWER_TIMEOUT_MS)));
  }

  /** Sends a GET request and reads a JSON answer. */
  get<T>(path: string): Promise<AnswerOrFailure<T>> {
    return this.#answer(path, () => this.#fetch(path, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) }));
  }

  /** Returns the failure that an answer other than 200 describes. */
  async failure(response: Response): Promise<AskFailure> {
    const failure = failureOf(await response.text().catch(() => ''), response.status);
    // The user may have entered another token in the meantime.
    if (response.status === 401 && this.#askedWith.get(response) === this.#token) {
      this.#refusal = failure.error;
      this.onTokenWanted(failure.error);
    }
    return failure;
  }

  async #answer<T>(path: string, ask: () => Promise<Response>): Promise<AnswerOrFailure<T>> {
    if (this.#refusal !== undefined && !this.#isActing) {
      return { ok: false, status: 401, error: this.#refusal, isMaybeDone: false };
    }
    try {
      const response = await ask();
      if (!response.ok) return { ok: false, ...(await this.failure(response)) };
      const body: unknown = await response.json();
      if (isUsable(path, body)) return { ok: true, body: body as T };
      return { ok: false, status: response.status, error: UNUSABLE, isMaybeDone: true };
    } catch {
      return { ok: false, status: 0, error: 'weir did not answer.', isMaybeDone: true };
    }
  }

  readonly #askedWith = new WeakMap<Response, string>();

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    const token = this.#token;
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    const options = { ...init, headers, cache: 'no-store', credentials: 'same-origin' } as const;
    const response = await fetch(this.#base + path, options);
    if (token !== undefined) this.#askedWith.set(response, token);
    if (response.ok && token === this.#token) this.#refusal = undefined;
    return response;
  }
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
