import { get } from 'node:http';
import { get as getOverTls } from 'node:https';
import { loadPolicies } from '../config/files/load-policies.js';
import type { KeyPath } from '../config/show/why-unmatched.js';
import type { PolicySet } from '../policy/policy-set.js';
import { defaultOf } from '../server/settings/settings-table.js';
import { isText, listOf, objectOf, optional } from './call/answer-shape.js';
import { limitTime } from './call/time-limit.js';
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
/** Maximum size of a `/rlconfig` answer in bytes: several hundred thousand rules. */
const MAX_CONFIG_BYTES = 256 * 1024 * 1024;

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
  const address = debug ?? target.debug ?? defaultDebugAddress(target.address);
  if (address === undefined) return { kind: 'unknown', why: undefined };
  const domains = await readConfig(address, debug === undefined && target.debugTls === true);
  if (typeof domains !== 'string') return { kind: 'debug port', address, domains };
  return { kind: 'unknown', why: debug === undefined ? undefined : domains };
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
  readonly domains: readonly ShownDomain[];
}

interface ShownDomain {
  readonly domain: string;
  readonly policy?: ShownPolicy;
}

/** A policy in effect, as the debug port shows it. */
export interface ShownPolicy {
  readonly derive: readonly unknown[];
  readonly rules: readonly ShownRule[];
}

interface ShownRule {
  readonly keys?: KeyPath;
}

const isRule = objectOf<ShownRule>({ keys: optional(listOf(isText)) });
const isPolicy = objectOf<ShownPolicy>({ derive: listOf(() => true), rules: listOf(isRule) });
const isDomain = objectOf<ShownDomain>({ domain: isText, policy: optional(isPolicy) });
const isConfig = objectOf<ShownConfig>({ domains: listOf(isDomain) });

function loadedDomains({ domains }: ShownConfig): Domains {
  return new Map(domains.flatMap(({ domain, policy }) => (policy === undefined ? [] : [[domain, policy]])));
}

/** Returns the default debug address if `address` is the default gRPC port on this machine, else undefined. */
function defaultDebugAddress(address: string): string | undefined {
  const [host, port] = [
    address.slice(0, address.lastIndexOf(':')),
    address.slice(address.lastIndexOf(':') + 1),
  ];
  const isDefault = LOOPBACK.test(host) && port === defaultOf('grpcPort');
  return isDefault ? `${host}:${defaultOf('debugPort')}` : undefined;
}

/**
 * Reads the policies from a debug port. Returns an error message if it shows none. With `isOwnServer`, the port belongs
 * to the server of this environment and uses TLS, so any certificate is accepted.
 */
function readConfig(address: string, isOwnServer: boolean): Promise<Domains | string> {
  const failed = (why: string): string => `the debug port at ${address} returned no policies (${why})`;
  return new Promise((resolve) => {
    const [scheme, ask] = isOwnServer ? ['https', getOverTls] : ['http', get];
    const request = ask(
      `${scheme}://${address}/rlconfig?format=json`,
      { agent: false, ...(isOwnServer && { rejectUnauthorized: false }) },
      (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > MAX_CONFIG_BYTES) request.destroy(new Error('the answer is too long'));
          else chunks.push(chunk);
        });
        response.on('error', (error) => resolve(failed(error.message)));
        response.on('end', () =>
          resolve(parseConfig(Buffer.concat(chunks)) ?? failed('the server is not weir')),
        );
      },
    );
    limitTime(request, DEBUG_TIMEOUT_MS);
    request.on('error', (error) => resolve(failed(error.message)));
  });
}

function parseConfig(bytes: Buffer): Domains | undefined {
  try {
    const shown: unknown = JSON.parse(bytes.toString());
    return isConfig(shown) ? loadedDomains(shown) : undefined;
  } catch {
    return undefined;
  }
}
