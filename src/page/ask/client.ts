import { isUsable } from './usable.js';

/** Why a question has no answer that can be used. */
export interface AskFailure {
  /** 0: no answer came, and it is not known whether the question did. */
  readonly status: number;
  /** A sentence. */
  readonly error: string;
  /** Whether what was asked for may have been done nonetheless. */
  readonly isMaybeDone: boolean;
}

/** What a question is answered. */
export type AnswerOrFailure<T> =
  | { readonly ok: true; readonly body: T }
  | (AskFailure & { readonly ok: false });

/** How long an answer may take, ms. */
const PATIENCE_MS = 20_000;
const UNUSABLE =
  'weir answered in a way that this page does not understand, as another version may: load the page again.';
const JSON_HEADERS = { 'content-type': 'application/json' };

/** Asks the server that the page is from. */
export class Client {
  #token: string | undefined;
  /** The sentence with which the server refused the token in use, or that there was none. */
  #refusal: string | undefined;
  #isActing = false;
  /** Called with the server's sentence where it wants a token, or another one. */
  onTokenWanted: (sentence: string) => void = () => {};
  readonly #base: string;

  /** @param path that of the page: what is asked lies beside it, also behind a proxy that adds a prefix */
  constructor(path: string) {
    this.#base = path.endsWith('/') ? path : `${path}/`;
  }

  /** Sent with each question where there is one; never part of an address. */
  get token(): string | undefined {
    return this.#token;
  }

  set token(token: string | undefined) {
    this.#token = token;
    this.#refusal = undefined;
  }

  /**
   * Somebody does something now: what that asks for is asked. Otherwise nothing is asked after the server has refused
   * the token, as what views ask for by themselves would open the dialog again and again.
   */
  acts(): void {
    this.#isActing = true;
    setTimeout(() => {
      this.#isActing = false;
    });
  }

  /** A POST, whose answer is read by the caller. Rejects where none comes. */
  open(path: string, body: object, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    return this.#fetch(path, {
      method: 'POST',
      headers: { ...JSON_HEADERS, ...headers },
      body: JSON.stringify(body),
      signal,
    });
  }

  /** A POST with JSON that is answered with JSON. */
  ask<T>(path: string, body: object): Promise<AnswerOrFailure<T>> {
    return this.#answer(path, () => this.open(path, body, {}, AbortSignal.timeout(PATIENCE_MS)));
  }

  /** A GET that is answered with JSON. */
  get<T>(path: string): Promise<AnswerOrFailure<T>> {
    return this.#answer(path, () => this.#fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS) }));
  }

  /** What is wrong, from an answer that is not 200. */
  async failure(response: Response): Promise<AskFailure> {
    const failure = failureOf(await response.text().catch(() => ''), response.status);
    // Another token may have been entered meanwhile.
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
    const whole = { ...init, headers, cache: 'no-store', credentials: 'same-origin' } as const;
    const response = await fetch(this.#base + path, whole);
    if (token !== undefined) this.#askedWith.set(response, token);
    if (response.ok && token === this.#token) this.#refusal = undefined;
    return response;
  }
}

/** With the server's sentence, or what a proxy on the way said. */
function failureOf(text: string, status: number): AskFailure {
  try {
    const { error, maybe_done: maybeDone } = JSON.parse(text) as { error?: unknown; maybe_done?: unknown };
    if (typeof error === 'string' && error !== '') {
      // An error that weir did not foresee may have come after the deed.
      return { status, error, isMaybeDone: maybeDone === true || status === 500 };
    }
  } catch {
    // It is no JSON.
  }
  const error =
    status === 404
      ? 'There is nothing at this address (status 404): it is an older weir, or another server.'
      : `The answer has the status ${status} and no sentence of weir: a proxy on the way may have answered.`;
  // A proxy may have passed the question on before it failed.
  return { status, error, isMaybeDone: status >= 500 };
}
