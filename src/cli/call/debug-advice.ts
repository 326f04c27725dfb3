import { certificateFault } from '../../certificate-fault.js';
import { printableLine } from '../../printable.js';
import { shown } from '../../shown-text.js';
import { type DebugAccess, type DebugServer, debugName } from './debug-server.js';
import { detectProtocol } from './detect-protocol.js';

/** A failed call to a debug port. */
interface FailedCall {
  readonly server: DebugServer;
  readonly access: DebugAccess;
  /** Whether the call changes state on the server. */
  readonly changes: boolean;
  /** Whether the request was sent, so that the server may have processed it. */
  readonly sent: boolean;
}

const OUTCOME_UNKNOWN =
  '; it is not known whether it was done: look with weir bucket show before you do it again';

/** Maximum length of a server's error message, in characters. Longer messages, which weir never sends, are cut. */
const MAX_MESSAGE_CHARACTERS = 2000;

const GRPC_PORT_ADVICE =
  'speaks HTTP/2, as the gRPC port does; name the debug port (DEBUG_PORT) with --address';

/**
 * Explains why a call failed and what to do, in a sentence without a full stop. The sentence never contains a token.
 */
export async function callFailureMessage(error: NodeJS.ErrnoException, call: FailedCall): Promise<string> {
  const why = await reason(error, call);
  return printableLine(call.changes && call.sent ? `${why}${OUTCOME_UNKNOWN}` : why);
}

async function reason(error: NodeJS.ErrnoException, { server, access, sent }: FailedCall): Promise<string> {
  const name = debugName(server);
  switch (error.code) {
    case 'ECONNREFUSED':
      return (
        `nothing listens on ${name}; start weir serve, or name the debug port of the server with --address ` +
        '(DEBUG_HOST and DEBUG_PORT; from afar through kubectl port-forward or ssh -L)'
      );
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host name of ${name} is unknown; correct it, and name the server with --address`;
    case 'ETIMEDOUT':
      return `no answer from ${name} within ${access.timeoutMs} ms; look at the server, or raise --timeout`;
    case 'EOTHERCERT':
      return `${name}: ${error.message}; start the server again, or name it with --address and --tls-ca`;
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return (
        `the certificate of ${name} is for another name (${error.message}); name the server with --address as ` +
        'its certificate does'
      );
  }
  if (
    /self[- ]signed certificate|unable to (?:verify|get)|certificate has expired|not yet valid/.test(
      error.message,
    )
  ) {
    const remedy =
      access.ca === undefined
        ? 'name the file with its issuer with --tls-ca'
        : 'the file of --tls-ca must hold its issuer, and the certificate must be valid now';
    return `the certificate of ${name} is not accepted (${certificateFault(error.message)}); ${remedy}`;
  }
  const other = sent && server.tls ? undefined : await protocolMismatch(server, name);
  return (
    other ??
    `no answer from ${name}: ${error.message}; look at the server, and check that this is its debug port`
  );
}

/** Returns advice if the listener uses another protocol than the call, else undefined. */
async function protocolMismatch(server: DebugServer, name: string): Promise<string | undefined> {
  const host = server.host.includes(':') ? `[${server.host}]` : server.host;
  const protocol = await detectProtocol(`${host}:${server.port}`);
  if (protocol === 'HTTP/2') {
    return `${name} ${GRPC_PORT_ADVICE}`;
  }
  if (protocol === 'TLS' && !server.tls) {
    return (
      `${name} speaks TLS, and it was asked in clear text; write https:// before the address, and name the file ` +
      'with the issuer of its certificate with --tls-ca'
    );
  }
  if (protocol === 'HTTP/1.1' && server.tls) {
    return `${name} speaks clear text, and it was asked over TLS; write http:// before the address`;
  }
  return undefined;
}

/**
 * Explains an error status or an invalid answer and what to do, in a sentence without a full stop. `serverMessage` is
 * the server's error message, if it sent one.
 */
export function errorAnswerMessage(
  server: DebugServer,
  path: string,
  status: number,
  serverMessage: string | undefined,
): string {
  const sentence =
    serverMessage === undefined
      ? undefined
      : shown(serverMessage.trim(), MAX_MESSAGE_CHARACTERS).replace(/\.$/, '');
  return printableLine(`${debugName(server)}: ${errorAnswerReason(path, status, sentence)}`);
}

function errorAnswerReason(path: string, status: number, serverMessage: string | undefined): string {
  if (serverMessage !== undefined) {
    const tokenMissing = status === 401 && !serverMessage.includes('--token-file');
    return tokenMissing
      ? `${serverMessage}; name the file that holds it with --token-file, or set WEIR_ADMIN_TOKEN`
      : serverMessage;
  }
  switch (status) {
    case 404:
      return (
        `there is no ${path}: it is an older weir, or not the debug port of one; name that with --address ` +
        '(DEBUG_HOST and DEBUG_PORT)'
      );
    case 505:
      return GRPC_PORT_ADVICE;
    case 200:
      return `${path} answered something that is none of weir's answers; name the debug port of a weir with --address`;
    default:
      return `${path} answered HTTP status ${status}; look at the server, and check that this is its debug port`;
  }
}
