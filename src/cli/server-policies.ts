import { loadPolicies } from '../config/files/load-policies.js';
import type { KeyPath } from '../config/show/why-unmatched.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { defaultOf } from '../server/settings/settings-table.js';
import { callDebugPort } from './call/debug-call.js';
import { type DebugServer, debugName, readDebugServer } from './call/debug-server.js';
import type { CheckOptions } from './check-options.js';

/** Domains in effect by name. */
type Domains = ReadonlyMap<string, ShownPolicy>;

/** What `weir check` knows about the policies of the server that it calls. */
export type ServerPolicies =
  /** The policies in `--policy`; no set if one of them is invalid. */
  | { readonly kind: 'files'; readonly path: string; readonly policySet: PolicySet | undefined }
  /** The policies in effect, as the debug port at `address` shows them. */
  | { readonly kind: 'debug port'; readonly address: string; readonly domains: Domains }
  /** `why` is the reason if `--debug` names a port that shows no policies. */
  | { readonly kind: 'unknown'; readonly why: string | undefined };

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
const DEBUG_TIMEOUT_MS = 2000;

/**
 * Reads the policies in `--policy`. Otherwise, asks the debug port in `--debug`, or in the environment variables that
 * contain the server's address. If the server has the default gRPC port on this machine, the default debug port is
 * used.
 */
export async function readServerPolicies({ policy, debug, target }: CheckOptions): Promise<ServerPolicies> {
  if (policy !== undefined) {
    const { policySet, errors } = loadPolicies([policy]);
    return { kind: 'files', path: policy, policySet: errors.length === 0 ? policySet : undefined };
  }
  const server = debug ?? target.debug ?? defaultDebugServer(target.address);
  if (server === undefined) return { kind: 'unknown', why: undefined };
  const access = { token: undefined, ca: undefined, timeoutMs: DEBUG_TIMEOUT_MS, isOfCheck: true } as const;
  const path = '/rlconfig?format=json';
  const read = await callDebugPort<ShownConfig>(server, access, { path, fields: { domains: 'list' } });
  if (!read.ok) return { kind: 'unknown', why: debug === undefined ? undefined : read.sentence };
  const domains = read.answer.domains.flatMap(({ domain, policy }) =>
    policy === undefined ? [] : [[domain, policy] as const],
  );
  return { kind: 'debug port', address: debugName(server).replace('http://', ''), domains: new Map(domains) };
}

/** Returns the names of the domains; undefined if they are unknown. */
export function domainNames(policies: ServerPolicies): readonly string[] | undefined {
  switch (policies.kind) {
    case 'files':
      return policies.policySet && [...policies.policySet.domains.keys()];
    case 'debug port':
      return [...policies.domains.keys()];
    case 'unknown':
      return undefined;
  }
}

/** Fields of `/rlconfig?format=json` that `weir check` reads. */
interface ShownConfig {
  readonly domains: readonly { readonly domain: string; readonly policy?: ShownPolicy }[];
}

/** A policy in effect, as the debug port shows it. */
export interface ShownPolicy {
  readonly derive: readonly unknown[];
  readonly rules: readonly { readonly keys?: KeyPath }[];
}

/** Returns the default debug port if `address` is the default gRPC port on this machine, else undefined. */
function defaultDebugServer(address: string): DebugServer | undefined {
  const [, host, port] = /^(.*):(.*)$/.exec(address) ?? [];
  if (host === undefined || !LOOPBACK.test(host) || port !== defaultOf('grpcPort')) return undefined;
  const server = readDebugServer(`${host}:${defaultOf('debugPort')}`, false);
  return typeof server === 'string' ? undefined : server;
}
