import { CODE, type DescriptorStatus, type RateLimitResponse } from '../codec/messages.js';
import { loadPolicies } from '../config/files/load-policies.js';
import { explain } from '../config/show/explain.js';
import { didYouMean, type KeyPath, whyUnmatched } from '../config/show/why-unmatched.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { shellText } from '../runtime/printable.js';
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
interface ShownPolicy {
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

/** Reasons why no rule matched a descriptor. */
export interface UnmatchedDescriptor {
  /** Position of the descriptor in the request; the first has position 1. */
  readonly descriptor: number;
  /** Sentences without an initial capital and without a full stop. */
  readonly why: readonly string[];
}

/** `limit_remaining` of an unlimited rule: the maximum of a uint32. */
const UNLIMITED_REMAINING = 0xffff_ffff;

export function isUnmatched({ code, currentLimit, limitRemaining }: DescriptorStatus): boolean {
  return code === CODE.OK && currentLimit === undefined && limitRemaining === 0;
}

export function isUnlimited({ code, currentLimit, limitRemaining }: DescriptorStatus): boolean {
  return code === CODE.OK && currentLimit === undefined && limitRemaining === UNLIMITED_REMAINING;
}

/** Explains for each descriptor of the answer why no rule of `domain` matched. */
export async function whyUnmatchedIn(
  answer: RateLimitResponse,
  options: CheckOptions,
  domain: string,
  policies: ServerPolicies | undefined,
): Promise<readonly UnmatchedDescriptor[]> {
  const numbers = answer.statuses.flatMap((status, at) => (isUnmatched(status) ? [at] : []));
  if (numbers.length === 0) return [];
  const request = { domain, descriptors: options.descriptors };
  const tell = reasonLookup(request, policies ?? (await readServerPolicies(options)));
  return numbers.map((at) => ({ descriptor: at + 1, why: tell(at) }));
}

/** A request, whose descriptors no rule matched. */
type Unmatched = Pick<CheckOptions, 'descriptors'> & { readonly domain: string };

/** Returns the reasons why no rule matched the descriptor at an index. */
type ReasonLookup = (at: number) => readonly string[];

function reasonLookup(request: Unmatched, policies: ServerPolicies): ReasonLookup {
  switch (policies.kind) {
    case 'files':
      return reasonsFromPolicy(request, policies);
    case 'debug port':
      return reasonsFromDebugPort(request, policies);
    case 'unknown':
      return () => (policies.why === undefined ? [HINT] : [policies.why, HINT]);
  }
}

const HINT =
  'to find the reason, specify the policy with --policy <path>, or the debug port of the server with ' +
  '--debug <host:port>';

const OTHER_CAUSES =
  'the server has a different policy, another rule replaces this rule, or the store is unavailable and ' +
  'on_store_failure allows requests';

function reasonsFromPolicy(
  { domain, descriptors }: Unmatched,
  { path, policySet }: ServerPolicies & { readonly kind: 'files' },
): ReasonLookup {
  if (policySet === undefined) {
    return () => [
      `the policy at ${path} is invalid, so weir check cannot show the reason; run weir check-config`,
    ];
  }
  return (at) => {
    const { rules, result, to_match } = explain(policySet, domain, descriptors[at]?.entries ?? []);
    if (rules.length === 0) return [result, ...to_match];
    return [
      `${result.replace(/\.$/, '')} in ${path}, but not on the server. Possible causes: ${OTHER_CAUSES}.`,
    ];
  };
}

function reasonsFromDebugPort(
  { domain, descriptors }: Unmatched,
  { address, domains }: ServerPolicies & { readonly kind: 'debug port' },
): ReasonLookup {
  const policy = domains.get(domain);
  if (policy === undefined) {
    const names = [...domains.keys()];
    const known =
      didYouMean(domain, names) || `it has ${names.slice(0, 5).map(shellText).join(', ') || 'no domains'}`;
    return () => [`the server with the debug port ${address} has no domain ${shellText(domain)}: ${known}`];
  }
  if (policy.derive.length > 0) {
    return () => [
      'the domain derives entries before matching, so the debug port cannot show the reason; specify ' +
        'the policy with --policy <path>',
    ];
  }
  const paths = policy.rules.flatMap(({ keys }) => (keys === undefined ? [] : [keys]));
  const shortestFirst = [...paths].sort((one, other) => one.length - other.length);
  return (at) => {
    const keys = descriptors[at]?.entries.map(({ key }) => key) ?? [];
    const hasRule = paths.some((path) => pathId(path) === pathId(keys));
    const why = whyUnmatched(keys, distinct(shortestFirst));
    return hasRule ? [`${why}. Other possible causes: ${OTHER_CAUSES}`] : [why];
  };
}

function pathId(path: KeyPath): string {
  return JSON.stringify(path);
}

function distinct(paths: readonly KeyPath[]): readonly KeyPath[] {
  return [...new Map(paths.map((path) => [pathId(path), path])).values()];
}
