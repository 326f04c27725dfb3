import { certificateFault } from '../../runtime/error-texts.js';
import { printableLine } from '../../runtime/printable.js';
import { shown } from '../../runtime/texts.js';
import { type DebugAccess, type DebugServer, debugName } from './debug-server.js';
import { detectProtocol } from './detect-protocol.js';

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

/** Returns how a user makes the command trust the CA of a server. */
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
export async function callFailureMessage(error: NodeJS.ErrnoException, call: FailedCall): Promise<string> {
  const why = await reason(error, call);
  return printableLine(call.changes && call.sent ? `${why}${OUTCOME_UNKNOWN}` : why);
}

async function reason(error: NodeJS.ErrnoException, { server, access, sent }: FailedCall): Promise<string> {
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
  const other = sent && server.tls ? undefined : await protocolMismatch(server, name, access);
  return (
    other ??
    `the call to ${name} failed: ${error.message}; check that the server runs and that this address is ` +
      "the server's debug port"
  );
}

/** Returns advice if the listener does not use the protocol of the call, else undefined. */
async function protocolMismatch(
  server: DebugServer,
  name: string,
  access: DebugAccess,
): Promise<string | undefined> {
  const host = server.host.includes(':') ? `[${server.host}]` : server.host;
  const protocol = await detectProtocol(`${host}:${server.port}`);
  if (protocol === 'HTTP/2') {
    return `${name}: ${grpcPortAdvice(access)}`;
  }
  if (protocol === 'TLS' && !server.tls) {
    return (
      `${name} speaks TLS, but weir connected without TLS; write https:// before the address, and ` +
      trustAdvice(access)
    );
  }
  if (protocol === 'HTTP/1.1' && server.tls) {
    return `${name} does not speak TLS, but weir connected with TLS; write http:// before the address`;
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
