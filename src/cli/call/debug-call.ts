import { X509Certificate } from 'node:crypto';
import { type ClientRequest, request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { checkServerIdentity, type TLSSocket } from 'node:tls';
import { printableLine } from '../../runtime/printable.js';
import { certificateFault, shown } from '../../runtime/texts.js';
import { readNamedFile } from '../../server/followed-files.js';
import { type DebugAccess, type DebugServer, debugName } from './debug-server.js';

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
    return { ok: false, sentence: callFailureMessage(error as CallError, about) };
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

interface CallError extends NodeJS.ErrnoException {
  /** Bytes that are not HTTP/1.1. */
  readonly rawPacket?: Buffer;
}

interface FailedCall {
  readonly server: DebugServer;
  readonly access: DebugAccess;
  /** Whether the call changes state on the server. */
  readonly changes: boolean;
  /** Whether the request was sent, so that the server may have processed it. */
  readonly sent: boolean;
}

const OUTCOME_UNKNOWN =
  '; the server may have made the change, so check with weir bucket show before you try again';

/** Maximum length of a server's error message, in characters. Longer messages, which weir never sends, are cut. */
const MAX_MESSAGE_CHARACTERS = 2000;

function addressOption({ isOfCheck }: DebugAccess): string {
  return isOfCheck ? '--debug' : '--address';
}

function trustAdvice({ isOfCheck }: DebugAccess): string {
  return `set ${isOfCheck ? 'NODE_EXTRA_CA_CERTS' : '--tls-ca'} to the file with the CA certificate`;
}

function grpcPortAdvice(access: DebugAccess): string {
  return (
    'the server speaks HTTP/2, so this may be the gRPC port; specify the debug port (DEBUG_PORT) with ' +
    addressOption(access)
  );
}

/**
 * Explains why a call failed and what to do, in a sentence without a full stop. The sentence never contains a token.
 */
function callFailureMessage(error: CallError, call: FailedCall): string {
  const why = reason(error, call);
  return printableLine(call.changes && call.sent ? `${why}${OUTCOME_UNKNOWN}` : why);
}

function reason(error: CallError, { server, access }: FailedCall): string {
  const name = debugName(server);
  const option = addressOption(access);
  const retry = access.isOfCheck ? '' : ', or raise --timeout';
  switch (error.code) {
    case 'ECONNREFUSED':
      return (
        `nothing listens on ${name}; start weir serve, or specify the server's debug port with ${option} ` +
        '(DEBUG_HOST and DEBUG_PORT), or use kubectl port-forward or ssh -L for a remote server'
      );
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host name in ${name} cannot be resolved; specify the correct address with ${option}`;
    case 'ETIMEDOUT':
      return `no answer from ${name} within ${access.timeoutMs} ms; check the server${retry}`;
    case 'EOTHERCERT':
      return (
        `${name}: ${error.message}; restart the server to load the new certificate, or specify the server ` +
        'with --address and --tls-ca'
      );
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return (
        `the certificate of ${name} is for another name (${error.message}); set ${option} to a name in ` +
        'the certificate'
      );
  }
  if (
    /self[- ]signed certificate|unable to (?:verify|get)|certificate has expired|not yet valid/.test(
      error.message,
    )
  ) {
    const remedy =
      access.ca === undefined
        ? trustAdvice(access)
        : 'check that the --tls-ca file contains the CA of this certificate, and that the certificate has not expired';
    return `the certificate of ${name} is not accepted (${certificateFault(error.message)}); ${remedy}`;
  }
  // A listener with TLS closes a connection that does not begin with a handshake.
  const perhapsTls =
    server.tls || error.code !== 'ECONNRESET'
      ? ''
      : `; if the port uses TLS, write https:// before the address, and ${trustAdvice(access)}`;
  return (
    protocolMismatch(error, server, access) ??
    `the call to ${name} failed: ${error.message}; check that the server runs and that this address is ` +
      `the server's debug port${perhapsTls}`
  );
}

/** Returns advice if the error of Node.js means that the listener uses another protocol, else undefined. */
function protocolMismatch(
  { message, rawPacket }: CallError,
  server: DebugServer,
  access: DebugAccess,
): string | undefined {
  const name = debugName(server);
  // A SETTINGS frame, which an HTTP/2 server sends first (RFC 9113 section 3.4).
  if (rawPacket?.[3] === 4) return `${name}: ${grpcPortAdvice(access)}`;
  return /wrong version number|disconnected before secure TLS/.test(message)
    ? `the TLS handshake with ${name} failed; if it does not speak TLS, write http:// before the address`
    : undefined;
}

/**
 * Explains an error status or an invalid answer and what to do, in a sentence without a full stop. `serverMessage` is
 * the server's error message, if it sent one.
 */
function errorAnswerMessage(
  server: DebugServer,
  path: string,
  status: number,
  serverMessage: string | undefined,
  access: DebugAccess,
): string {
  const sentence =
    serverMessage === undefined
      ? undefined
      : shown(serverMessage.trim(), MAX_MESSAGE_CHARACTERS).replace(/\.$/, '');
  return printableLine(`${debugName(server)}: ${errorAnswerReason(path, status, sentence, access)}`);
}

function errorAnswerReason(
  path: string,
  status: number,
  serverMessage: string | undefined,
  access: DebugAccess,
): string {
  if (serverMessage !== undefined) {
    const tokenMissing = status === 401 && !serverMessage.includes('--token-file');
    return tokenMissing
      ? `${serverMessage}; set --token-file to the file that contains the token, or set WEIR_ADMIN_TOKEN`
      : serverMessage;
  }
  switch (status) {
    case 404:
      return (
        `${path} does not exist: the server is an older version of weir, or this address is not its debug ` +
        `port; specify the debug port (DEBUG_HOST and DEBUG_PORT) with ${addressOption(access)}`
      );
    case 505:
      return grpcPortAdvice(access);
    case 200:
      return (
        `the answer to ${path} does not come from weir; specify the debug port of a weir server with ` +
        addressOption(access)
      );
    default:
      return (
        `${path} returned HTTP status ${status}; check the server, and check that this address is the ` +
        "server's debug port"
      );
  }
}
