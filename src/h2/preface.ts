import { CLIENT_PREFACE } from './frames.js';

/** Classification of the first bytes of a connection. `more`: undecided, more bytes are needed. */
export type PrefaceVerdict = 'more' | 'http2' | 'http1' | 'garbage';

/** Maximum length of an HTTP/1 method. Longer sequences of capital letters are garbage. */
const MAX_METHOD_BYTES = 20;
/** Length of `PRI `, which an HTTP/1 request with a custom method may have in common with the preface. */
const PRI_METHOD_BYTES = 4;
const HTTP1 = /^[A-Z]+ (?:\/|\*|http)/;
const HTTP1_BEGINNING = /^[A-Z]+(?: (?:h(?:t(?:tp?)?)?)?)?$/;

/**
 * Distinguishes the HTTP/2 preface (RFC 9113 section 3.4) from an HTTP/1 request line and from everything else. Decides
 * after as few bytes as possible, in chunks that may be split anywhere.
 */
export class PrefaceReader {
  /** Number of bytes of the last chunk that belong to the preface, if the result is `http2`. */
  used = 0;
  #matched = 0;
  #seen = '';

  read(chunk: Buffer): PrefaceVerdict {
    if (this.#seen === '') {
      let at = 0;
      while (
        at < chunk.length &&
        this.#matched < CLIENT_PREFACE.length &&
        chunk[at] === CLIENT_PREFACE[this.#matched]
      ) {
        at++;
        this.#matched++;
      }
      this.used = at;
      if (this.#matched === CLIENT_PREFACE.length) return 'http2';
      if (at === chunk.length) return 'more';
      if (this.#matched > PRI_METHOD_BYTES) return 'garbage';
      this.#seen = CLIENT_PREFACE.toString('latin1', 0, this.#matched);
      return this.#classify(chunk, at);
    }
    return this.#classify(chunk, 0);
  }

  #classify(chunk: Buffer, from: number): PrefaceVerdict {
    for (let at = from; at < chunk.length; at++) {
      this.#seen += String.fromCharCode(chunk[at] as number);
      if (HTTP1.test(this.#seen)) return 'http1';
      const method = this.#seen.indexOf(' ');
      if (!HTTP1_BEGINNING.test(this.#seen) || (method < 0 && this.#seen.length > MAX_METHOD_BYTES))
        return 'garbage';
    }
    return 'more';
  }
}

const HTTP1_BODY =
  'This port accepts only gRPC over HTTP/2. Use a gRPC client, or HTTP/2 with prior knowledge.\n';

/** The answer to an HTTP/1 request. */
export const HTTP1_ANSWER = Buffer.from(
  'HTTP/1.1 505 HTTP Version Not Supported\r\n' +
    'content-type: text/plain\r\n' +
    `content-length: ${HTTP1_BODY.length}\r\n` +
    'connection: close\r\n' +
    `\r\n${HTTP1_BODY}`,
  'latin1',
);
