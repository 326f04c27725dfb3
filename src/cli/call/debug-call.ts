import { X509Certificate } from 'node:crypto';
import { type ClientRequest, request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { checkServerIdentity, type TLSSocket } from 'node:tls';
import { readNamedFile } from '../../server/named-file.js';
import { callFailureMessage, errorAnswerMessage } from './debug-advice.js';
import type { DebugAccess, DebugServer } from './debug-server.js';

/** Maximum size of an answer in bytes: the policies of several hundred thousand rules. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

export interface DebugRequest {
  /** Path, such as `/buckets`. */
  readonly path: string;
  /** Body of a POST request, which is sent as JSON; undefined for a GET request. */
  readonly body?: object;
  /** Whether the request changes state. If its answer is lost, it is unknown whether the change was made. */
  readonly changes?: boolean;
  /** Fields of an answer. Another service may listen on the port instead of a debug port. */
  readonly fields: Readonly<Record<string, 'string' | 'number' | 'boolean' | 'object' | 'list'>>;
}

export type DebugResult<Answer> =
  | { readonly ok: true; readonly answer: Answer }
  /** `sentence` describes the problem and the remedy, without a full stop. */
  | { readonly ok: false; readonly sentence: string };

interface RawAnswer {
  readonly status: number;
  readonly body: string;
}

/** Sends one request to a debug port on a new connection. Never rejects. */
export async function callDebugPort<Answer>(
  server: DebugServer,
  access: DebugAccess,
  { path, body: question, changes = false, fields }: DebugRequest,
): Promise<DebugResult<Answer>> {
  let sent = false;
  let raw: RawAnswer;
  try {
    raw = await send(server, access, path, question && JSON.stringify(question), () => {
      sent = true;
    });
  } catch (error) {
    const about = { server, access, changes, sent };
    return { ok: false, sentence: await callFailureMessage(error as NodeJS.ErrnoException, about) };
  }
  const body = parseObject(raw.body);
  const isAnswer = Object.entries(fields).every(([name, type]) =>
    type === 'list' ? Array.isArray(body?.[name]) : typeof body?.[name] === type,
  );
  if (raw.status === 200 && isAnswer) return { ok: true, answer: body as Answer };
  const { error } = body ?? {};
  const reason = typeof error === 'string' ? error : undefined;
  return { ok: false, sentence: errorAnswerMessage(server, path, raw.status, reason, access) };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Sends one request. Calls `onSent` before it is sent, since the server may process it from then on. Rejects if the
 * complete answer does not arrive within the timeout.
 */
function send(
  server: DebugServer,
  access: DebugAccess,
  path: string,
  body: string | undefined,
  onSent: () => void,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const request = open(server, access, path, body);
    const giveUp = (message: string, code?: string): void => {
      reject(Object.assign(new Error(message), { code }));
      request.destroy();
    };
    limitTime(request, access.timeoutMs);
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
    // The request is sent after the TLS handshake and the check of the certificate, so that no other server receives
    // the token.
    request.once('socket', (socket) => {
      socket.once(server.tls ? 'secureConnect' : 'connect', () => {
        const { pinnedCertificate } = server;
        const mismatch = pinnedCertificate && certificateMismatch(socket as TLSSocket, pinnedCertificate);
        if (mismatch instanceof Error) {
          request.destroy(mismatch);
          return;
        }
        onSent();
        request.end(body);
      });
    });
  });
}

function open(
  { tls, host, port, certificateName, pinnedCertificate }: DebugServer,
  { token, ca }: DebugAccess,
  path: string,
  body: string | undefined,
): ClientRequest {
  const options: RequestOptions = {
    host,
    port,
    path,
    method: body === undefined ? 'GET' : 'POST',
    agent: false,
    headers: {
      ...(body !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }),
      accept: 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
  };
  if (!tls) return httpRequest(options);
  return httpsRequest({
    ...options,
    ...(ca !== undefined && { ca }),
    ...(pinnedCertificate !== undefined && { rejectUnauthorized: false }),
    ...(certificateName !== undefined && {
      servername: certificateName,
      checkServerIdentity: (_host: string, certificate: Parameters<typeof checkServerIdentity>[1]) =>
        checkServerIdentity(certificateName, certificate),
    }),
  });
}

/** Returns an error if the server's certificate is not the one in the file at `path`. */
function certificateMismatch(socket: TLSSocket, path: string): Error | undefined {
  try {
    const expected = new X509Certificate(readNamedFile('DEBUG_SERVER_TLS_CERT', path));
    if (socket.getPeerX509Certificate()?.fingerprint256 === expected.fingerprint256) return undefined;
    return Object.assign(new Error(`the server certificate differs from the certificate in ${path}`), {
      code: 'EOTHERCERT',
    });
  } catch (error) {
    return error as Error;
  }
}

/**
 * Destroys a request with an Error unless it has ended after `ms` milliseconds. The timeouts of node:http are not
 * sufficient, because each byte of the answer restarts them.
 */
export function limitTime(request: ClientRequest, ms: number): void {
  const onTimeout = (): void => {
    request.destroy(Object.assign(new Error(`no answer within ${Math.round(ms)} ms`), { code: 'ETIMEDOUT' }));
  };
  const timer = setTimeout(onTimeout, ms).unref();
  request.once('close', () => clearTimeout(timer));
}
