import { X509Certificate } from 'node:crypto';
import { type ClientRequest, request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { checkServerIdentity, type TLSSocket } from 'node:tls';
import { boundRequest } from '../../bounded-request.js';
import { readNamedFile } from '../../server/settings/named-file.js';
import { callFailure, refusalSentence } from './debug-advice.js';
import type { DebugAccess, DebugServer } from './debug-server.js';

/** A longer answer is not read to its end: no question has one. Bytes. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/** What is asked of a debug port. */
export interface DebugQuestion<Answer> {
  /** `/buckets`. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body: unknown;
  /** Whether it changes something, so that a lost answer leaves open whether it did. */
  readonly changes: boolean;
  /** Whether what came is an answer. */
  isAnswer(body: unknown): body is Answer;
}

export type DebugResult<Answer> =
  | { readonly ok: true; readonly answer: Answer }
  /** `sentence`: what is wrong and what to do, without a full stop. */
  | { readonly ok: false; readonly sentence: string };

interface RawAnswer {
  readonly status: number;
  readonly body: string;
}

/** Asks a debug port, once and on a connection of its own. Never rejects. */
export async function askDebugPort<Answer>(
  server: DebugServer,
  access: DebugAccess,
  question: DebugQuestion<Answer>,
): Promise<DebugResult<Answer>> {
  const call = new DebugCall(server, access);
  let raw: RawAnswer;
  try {
    raw = await call.post(question.path, JSON.stringify(question.body));
  } catch (error) {
    const about = { server, access, changes: question.changes, sent: call.sent };
    return { ok: false, sentence: await callFailure(error as NodeJS.ErrnoException, about) };
  }
  const body = parsed(raw.body);
  if (raw.status === 200 && question.isAnswer(body)) return { ok: true, answer: body };
  const said = (body as { error?: unknown } | undefined)?.error;
  return {
    ok: false,
    sentence: refusalSentence(server, question.path, raw.status, typeof said === 'string' ? said : undefined),
  };
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** One POST. */
class DebugCall {
  /** Whether the server may have the question. */
  sent = false;
  readonly #server: DebugServer;
  readonly #access: DebugAccess;

  constructor(server: DebugServer, access: DebugAccess) {
    this.#server = server;
    this.#access = access;
  }

  /** Rejects where no whole answer comes in time. */
  post(path: string, body: string): Promise<RawAnswer> {
    return new Promise((resolve, reject) => {
      const request = this.#open(path, Buffer.byteLength(body));
      const giveUp = (message: string, code?: string): void => {
        reject(Object.assign(new Error(message), { code }));
        request.destroy();
      };
      boundRequest(request, this.#access.timeoutMs);
      request.on('response', (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > MAX_ANSWER_BYTES) giveUp('the answer is too long');
          else chunks.push(chunk);
        });
        response.on('error', reject);
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() });
        });
      });
      request.on('error', reject);
      request.on('close', () => giveUp('the connection was closed', 'ECONNRESET'));
      this.#send(request, body);
    });
  }

  #open(path: string, length: number): ClientRequest {
    const { tls, host, port, certificateName, ownCertificate } = this.#server;
    const { token, ca } = this.#access;
    const options: RequestOptions = {
      host,
      port,
      path,
      method: 'POST',
      agent: false,
      headers: {
        'content-type': 'application/json',
        'content-length': length,
        accept: 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
    };
    if (!tls) return httpRequest(options);
    return httpsRequest({
      ...options,
      ...(ca !== undefined && { ca }),
      ...(ownCertificate !== undefined && { rejectUnauthorized: false }),
      ...(certificateName !== undefined && {
        servername: certificateName,
        checkServerIdentity: (_host: string, certificate: Parameters<typeof checkServerIdentity>[1]) =>
          checkServerIdentity(certificateName, certificate),
      }),
    });
  }

  /** The token goes to nobody but the server: of one's own only after a look at its certificate. */
  #send(request: ClientRequest, body: string): void {
    const send = (): void => {
      this.sent = true;
      request.end(body);
    };
    const { tls, ownCertificate } = this.#server;
    request.once('socket', (socket) => {
      if (!tls) socket.once('connect', send);
      else {
        socket.once('secureConnect', () => {
          const wrong =
            ownCertificate === undefined ? undefined : wrongCertificate(socket as TLSSocket, ownCertificate);
          if (wrong === undefined) send();
          else request.destroy(wrong);
        });
      }
    });
  }
}

/** What is wrong where another certificate is shown than the file holds. */
function wrongCertificate(socket: TLSSocket, path: string): Error | undefined {
  try {
    const expected = new X509Certificate(readNamedFile('DEBUG_SERVER_TLS_CERT', path));
    if (socket.getPeerX509Certificate()?.fingerprint256 === expected.fingerprint256) return undefined;
    return Object.assign(new Error(`it shows another certificate than ${path} holds`), {
      code: 'EOTHERCERT',
    });
  } catch (error) {
    return error as Error;
  }
}
