import { isUsable } from './usable.js';

/** What a question is answered. Status 0: no answer came, and it is not known whether the question did. */
export type AnswerOrFailure<T> =
  | { readonly ok: true; readonly body: T }
  | { readonly ok: false; readonly status: number; readonly error: string };

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
  async failure(response: Response): Promise<{ status: number; error: string }> {
    const error = sentenceOf(await response.text().catch(() => ''), response.status);
    // Another token may have been entered meanwhile.
    if (response.status === 401 && this.#askedWith.get(response) === this.#token) {
      this.#refusal = error;
      this.onTokenWanted(error);
    }
    return { status: response.status, error };
  }

  async #answer<T>(path: string, ask: () => Promise<Response>): Promise<AnswerOrFailure<T>> {
    if (this.#refusal !== undefined && !this.#isActing) {
      return { ok: false, status: 401, error: this.#refusal };
    }
    try {
      const response = await ask();
      if (!response.ok) return { ok: false, ...(await this.failure(response)) };
      const body: unknown = await response.json();
      if (isUsable(path, body)) return { ok: true, body: body as T };
      return { ok: false, status: response.status, error: UNUSABLE };
    } catch {
      return { ok: false, status: 0, error: 'weir did not answer.' };
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

/** The server's sentence, or what a proxy on the way said. */
function sentenceOf(text: string, status: number): string {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    if (typeof error === 'string' && error !== '') return error;
  } catch {
    // It is no JSON.
  }
  if (status === 404)
    return 'There is nothing at this address (status 404): it is an older weir, or another server.';
  return `The answer has the status ${status} and no sentence of weir: a proxy on the way may have answered.`;
}
