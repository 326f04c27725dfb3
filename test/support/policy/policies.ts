import { formatProblem } from '../../../src/config/yaml/config-problem.js';
import type { Entry } from '../../../src/limiter/entry.js';
import type { CompiledPolicy, PolicySet } from '../../../src/policy/compiled-policy.js';
import { type ParsedPolicy, parsePolicy } from './parse-policy.js';

/**
 * Parses a policy given as text, under the name `policy.yaml`; `files` are the files and rows in Redis that the policy
 * may name.
 */
export function parse(text: string, files: Readonly<Record<string, string>> = {}): ParsedPolicy {
  const readFile = (file: string): Uint8Array => {
    const content = files[file];
    if (content === undefined) throw new Error(`"${file}" does not exist; check the path`);
    return Buffer.from(content);
  };
  // Only a server reads rows in Redis.
  const isServer = Object.keys(files).some((file) => file.startsWith('redis:'));
  return parsePolicy('policy.yaml', Buffer.from(text), readFile, isServer ? { rows: new Map() } : {});
}

/** Returns the policy of a text; throws if it is invalid. */
export function policyOf(text: string, files: Readonly<Record<string, string>> = {}): CompiledPolicy {
  const { policy, problems, tableFiles } = parse(text, files);
  const errors = [problems, ...tableFiles].flatMap((list) => list.errors.map(formatProblem));
  if (policy === undefined || errors.length > 0) throw new Error(`not a good policy:\n${errors.join('\n')}`);
  return policy;
}

/** Returns a set of policies, some of which may be given as valid texts. */
export function setOf(...policies: readonly (CompiledPolicy | string)[]): PolicySet {
  const compiled = policies.map((one) => (typeof one === 'string' ? policyOf(one) : one));
  return { domains: new Map(compiled.map((policy) => [policy.domain, policy])), version: 'v' };
}

/** Parses entries written as `key=value`. */
export function entries(...texts: readonly string[]): readonly Entry[] {
  return texts.map((text) => {
    const cut = text.indexOf('=');
    return cut < 0 ? { key: text, value: '' } : { key: text.slice(0, cut), value: text.slice(cut + 1) };
  });
}
