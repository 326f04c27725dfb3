import { openXdsPolicies } from '../../../src/server/policies/xds-policies.js';
import { RlsClient, type RlsReply } from '../grpc/rls-client.js';
import { descriptor } from '../policy/decider.js';
import { openPoliciesOf } from '../policy/open-policies.js';
import { closeLater } from '../process/close-later.js';
import { httpRequest } from '../process/http-client.js';
import { waitFor } from '../process/wait-for.js';
import type { XdsRequest, XdsResource, XdsServer } from '../xds/xds-server.js';
import { startWeir, type WeirServer } from './weir.js';

/** Returns settings for policies from the management server on `port`, with short pauses. */
function settingsOf(port: number): NodeJS.ProcessEnv {
  return {
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${port}`,
    // The timeout is long enough that a slow machine does not make the server appear unavailable.
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '60s',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: '400ms',
  };
}

/**
 * Starts a weir that gets its policies from the management server on `port`, with short pauses. It may not serve yet
 * when this resolves.
 */
export function startXdsWeir(port: number, env: NodeJS.ProcessEnv = {}): Promise<WeirServer> {
  return startWeir({ untilHealthy: false, env: { ...settingsOf(port), ...env } });
}

/** Follows policies in this process. By default, it does not wait for the first configuration. */
export async function followPolicies(port: number, env: NodeJS.ProcessEnv = {}, stopping?: AbortSignal) {
  const settings = {
    ...settingsOf(port),
    FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
    // The timer of a limit would keep the test process alive.
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '0',
    ...env,
  };
  const opened = await openPoliciesOf(settings, openXdsPolicies, stopping);
  return closeLater(opened, ({ provider }) => provider.close());
}

export function untilServing(weir: WeirServer): Promise<boolean> {
  return waitFor(
    'weir to serve',
    async () => (await httpRequest(weir.httpPort, '/healthcheck')).status === 200,
  );
}

/** Resolves with one decision about a descriptor of the entries. */
export async function ask(weir: WeirServer, domain: string, ...entries: string[]): Promise<RlsReply> {
  const client = new RlsClient(weir.grpcPort);
  try {
    return await client.ask(domain, [descriptor(entries)]);
  } finally {
    client.close();
  }
}

/** Returns a resource whose domain limits each value of `k` to the given number of requests an hour. */
export function windowConfig(domain: string, requests: number): XdsResource {
  const rateLimit = { unit: 'HOUR', requestsPerUnit: requests };
  return { json: { name: `${domain}-config`, domain, descriptors: [{ key: 'k', rateLimit }] } };
}

/** Resolves with the current limit of a domain of {@link windowConfig}. */
export async function limitOf(weir: WeirServer, domain: string): Promise<number | undefined> {
  const { response } = await ask(weir, domain, 'k=v');
  return response?.statuses[0]?.currentLimit?.requestsPerUnit;
}

export function acknowledges(version: string): (request: XdsRequest) => boolean {
  return (request) => request.version === version && request.nonce !== '' && request.error === undefined;
}

/** Resolves with the first request to the management server that satisfies `test`. */
export function untilRequest(
  server: XdsServer,
  what: string,
  test: (request: XdsRequest) => boolean,
): Promise<XdsRequest> {
  return waitFor(what, async () => (await server.requests()).find(test));
}

/** Returns the log lines whose message is `message`. */
export function logged({ log }: Pick<WeirServer, 'log'>, message: string): Record<string, unknown>[] {
  return log().filter(({ msg }) => msg === message);
}

export function untilLogged(
  weir: Pick<WeirServer, 'log'>,
  message: string,
): Promise<Record<string, unknown>> {
  return waitFor(`the line ${message}`, () => logged(weir, message)[0]);
}
