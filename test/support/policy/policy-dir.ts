import { rmSync } from 'node:fs';
import {
  type LoadedPolicies,
  type LoadOptions,
  loadPolicies,
} from '../../../src/config/files/load-policies.js';
import { formatProblem } from '../../../src/config/yaml/config-problem.js';
import { TempDir } from '../process/temp-dir.js';
import { entries } from './policies.js';

/** A directory of policies that is loaded repeatedly; each load knows the result of the previous one. */
export class PolicyDir {
  readonly dir = new TempDir();
  private before: LoadedPolicies | undefined;
  private readonly options: LoadOptions;

  constructor(options: LoadOptions = {}) {
    this.options = options;
  }

  /** Writes these files, removes those that are undefined, and loads the directory. */
  load(files: Readonly<Record<string, string | undefined>>): LoadedPolicies {
    for (const [name, text] of Object.entries(files)) {
      if (text === undefined) rmSync(this.dir.join(name));
      else this.dir.write(name, text);
    }
    this.before = loadPolicies([this.dir.path], this.options, this.before);
    return this.before;
  }

  /** Forgets earlier loads, as a restart of the process does. */
  restart(): void {
    this.before = undefined;
  }

  join(name: string): string {
    return this.dir.join(name);
  }

  /** Returns the errors, with file names relative to this directory. */
  errorsOf({ errors }: LoadedPolicies): string[] {
    return errors.map((error) => formatProblem(error).replaceAll(`${this.dir.path}/`, ''));
  }
}

/** Returns a valid file with one rule of `requests` a day. */
export function validFile(domain: string, requests: number): string {
  return `domain: ${domain}\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: ${requests} } }]\n`;
}

/** Returns a file with an error whose domain is readable. */
export function invalidFile(domain: string): string {
  return `domain: ${domain}\nfoo: bar\n`;
}

export const UNPARSEABLE = 'domain: [\n';

/** Returns the state of each domain, with the limit of its {@link validFile}: `d: ok 5`. */
export function statesOf({ domains, policySet }: LoadedPolicies): string[] {
  const states = domains.map(({ domain, state }) => {
    const rate = policySet.domains.get(domain)?.match(entries('k=v')).rules[0]?.rate;
    return `${domain}: ${state}${rate?.kind === 'window' ? ` ${rate.requestsPerUnit}` : ''}`;
  });
  const unnamed = [...policySet.domains.keys()].filter(
    (name) => !domains.some(({ domain }) => domain === name),
  );
  return [...states, ...unnamed.map((domain) => `${domain}: in force, but not named`)];
}
