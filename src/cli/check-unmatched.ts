import { get } from 'node:http';
import { get as getOverTls } from 'node:https';
import { boundRequest } from '../bounded-request.js';
import { CODE, type DescriptorStatus, type RateLimitResponse } from '../codec/messages.js';
import { loadPolicies } from '../config/files/load-policies.js';
import { explain } from '../config/show/explain.js';
import { shellText } from '../config/show/shell-text.js';
import { didYouMean, type KeyPath, whyUnmatched } from '../config/show/why-unmatched.js';
import { defaultOf } from '../server/settings/settings-table.js';
import { isText, listOf, objectOf, optional } from './call/answer-shape.js';
import type { CheckOptions } from './check-options.js';

/** Reasons why no rule matched a descriptor. */
export interface UnmatchedDescriptor {
  /** Position of the descriptor in the request; the first has position 1. */
  readonly descriptor: number;
  /** Sentences without an initial capital and without a full stop. */
  readonly why: readonly string[];
}

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
/** `limit_remaining` of an unlimited rule: the maximum of a uint32. */
const UNLIMITED_REMAINING = 0xffff_ffff;
const DEBUG_TIMEOUT_MS = 2000;
/** Maximum size of a `/rlconfig` answer in bytes: several hundred thousand rules. */
const MAX_CONFIG_BYTES = 256 * 1024 * 1024;

/** Returns whether no rule matched the descriptor. */
export function isUnmatched({ code, currentLimit, limitRemaining }: DescriptorStatus): boolean {
  return code === CODE.OK && currentLimit === undefined && limitRemaining === 0;
}

/** Returns whether a rule with `unlimited: true` matched the descriptor. */
export function isUnlimited({ code, currentLimit, limitRemaining }: DescriptorStatus): boolean {
  return code === CODE.OK && currentLimit === undefined && limitRemaining === UNLIMITED_REMAINING;
}

/**
 * Explains for each descriptor of the answer why no rule matched. Reads the policy in `--policy`. Otherwise, asks the
 * debug port in `--debug`, or in the environment variables that contain the server's address. If the server has the
 * default gRPC port on this machine, the default debug port is used.
 */
export async function whyUnmatchedIn(
  answer: RateLimitResponse,
  options: CheckOptions,
): Promise<readonly UnmatchedDescriptor[]> {
  const numbers = answer.statuses.flatMap((status, at) => (isUnmatched(status) ? [at] : []));
  if (numbers.length === 0) return [];
  const tell = await reasonLookup(options);
  return numbers.map((at) => ({ descriptor: at + 1, why: tell(at) }));
}

/** Returns the reasons why no rule matched the descriptor at an index. */
type ReasonLookup = (at: number) => readonly string[];

async function reasonLookup(options: CheckOptions): Promise<ReasonLookup> {
  if (options.policy !== undefined) return reasonsFromPolicy(options, options.policy);
  const address = options.debug ?? options.target.debug ?? defaultDebugAddress(options.target.address);
  if (address === undefined) return () => [HINT];
  const isOwn = options.debug === undefined && options.target.debugTls === true;
  const config = await readConfig(address, isOwn);
  if (typeof config !== 'string') return reasonsFromDebugPort(options, config, address);
  return () => (options.debug === undefined ? [HINT] : [config, HINT]);
}

const HINT =
  'to find the reason, specify the policy with --policy <path>, or the debug port of the server with ' +
  '--debug <host:port>';

const OTHER_CAUSES =
  'the server has a different policy, another rule replaces this rule, or the store is unavailable and ' +
  'on_store_failure allows requests';

function reasonsFromPolicy({ domain, descriptors }: CheckOptions, path: string): ReasonLookup {
  const { policySet, errors } = loadPolicies([path]);
  if (errors.length > 0) {
    return () => [
      `the policy at ${path} is invalid, so weir check cannot show the reason; run weir check-config`,
    ];
  }
  return (at) => {
    const { rules, result, toMatch } = explain(
      policySet,
      domain,
      descriptors[at]?.entries ?? [],
      Date.now() * 1000,
    );
    if (rules.length === 0) return [result, ...toMatch];
    return [
      `${result.replace(/\.$/, '')} in ${path}, but not on the server. Possible causes: ${OTHER_CAUSES}.`,
    ];
  };
}

/** Fields of `/rlconfig?format=json` that this file reads. */
interface ShownConfig {
  readonly domains: readonly ShownDomain[];
}

interface ShownDomain {
  readonly domain: string;
  readonly policy?: ShownPolicy;
}

interface ShownPolicy {
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

function reasonsFromDebugPort(
  { domain, descriptors }: CheckOptions,
  { domains }: ShownConfig,
  address: string,
): ReasonLookup {
  const loaded = domains.filter(({ policy }) => policy !== undefined);
  const policy = loaded.find((one) => one.domain === domain)?.policy;
  if (policy === undefined) {
    const names = loaded.map((one) => one.domain);
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

/** Returns a string that is unique for each path. */
function pathId(path: KeyPath): string {
  return JSON.stringify(path);
}

function distinct(paths: readonly KeyPath[]): readonly KeyPath[] {
  return [...new Map(paths.map((path) => [pathId(path), path])).values()];
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
function readConfig(address: string, isOwnServer: boolean): Promise<ShownConfig | string> {
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
    boundRequest(request, DEBUG_TIMEOUT_MS);
    request.on('error', (error) => resolve(failed(error.message)));
  });
}

function parseConfig(bytes: Buffer): ShownConfig | undefined {
  try {
    const shown: unknown = JSON.parse(bytes.toString());
    return isConfig(shown) ? shown : undefined;
  } catch {
    return undefined;
  }
}
