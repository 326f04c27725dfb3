import {
  failureFor,
  type PlanSource,
  readToken,
  SourceError,
  type SourceFailure,
  type SourceRows,
} from './plan-source.js';

/** Maximum length of an ETag. A server may refuse a request with a longer header. */
const MAX_ETAG = 1024;
/** Matches tokens that can be in a header. */
const TOKEN = /^[\x21-\x7e]+$/;
const INVALID_TOKEN =
  'PLANS_TOKEN_PATH: the file has spaces, several lines or other characters that a token cannot have; write only the ' +
  'token into it';

/**
 * Reads rows over HTTP(S) with conditional requests (RFC 9110 section 13.1.2). `fetch` follows at most 20 redirects,
 * sends the token only to the origin of the address, and decompresses.
 */
export class HttpPlanSource implements PlanSource {
  readonly #address: string;
  readonly #tokenFile: string;
  /** The ETag of the rows that were stored last. */
  #etag: string | undefined;

  /** `tokenFile`: a file with a bearer token, which is read for each request; '' for none. */
  constructor(address: string, tokenFile: string) {
    this.#address = address;
    this.#tokenFile = tokenFile;
  }

  async open(isStored: boolean, signal: AbortSignal): Promise<SourceRows | SourceFailure | 'unchanged'> {
    const etag = isStored ? this.#etag : undefined;
    const headers: Record<string, string> = {};
    if (etag !== undefined) headers['if-none-match'] = etag;
    if (this.#tokenFile !== '') {
      const token = await readToken(this.#tokenFile);
      // The error of `fetch` would contain the token.
      if (!TOKEN.test(token)) throw new SourceError('login', INVALID_TOKEN);
      headers['authorization'] = `Bearer ${token}`;
    }
    const response = await fetch(this.#address, { headers, signal });
    const { status, body } = response;
    if (status === 304 && etag !== undefined) return 'unchanged';
    if (status !== 200 || body === null) {
      await body?.cancel();
      return { kind: 'failed', reason: 'status', message: statusMessage(status) };
    }
    if (/^text\/html\b/i.test(response.headers.get('content-type') ?? '')) {
      await body.cancel();
      return { kind: 'failed', reason: 'content', message: 'the response is an HTML page, and not a table' };
    }
    const stored = (): void => {
      const next = response.headers.get('etag') ?? undefined;
      this.#etag = next !== undefined && next.length > MAX_ETAG ? undefined : next;
    };
    return { kind: 'rows', chunks: body, stored };
  }

  failureOf(error: unknown): SourceFailure {
    // `fetch` names what happened in the cause, and rejects reads of the body with `terminated`.
    const { message, cause } = error as Error & { readonly cause?: Error };
    return failureFor(cause ?? (error as Error), message === 'terminated' ? 'transfer' : 'connection');
  }
}

function statusMessage(status: number): string {
  if (status === 401 || status === 403) {
    return `the server answers with status ${status}; check the token in PLANS_TOKEN_PATH`;
  }
  if (status === 304) return 'the server answers with status 304 to a request without an ETag';
  return `the server answers with status ${status}`;
}
