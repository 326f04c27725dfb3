import { VARIABLES } from '../../server/settings/settings-table.js';
import { emptyVariables, readEnvFile } from './env-file.js';
import { InputError } from './input.js';
import type { Finding } from './report.js';

/** The variables of a service that the files contain. A later source overrides an earlier one. */
export class Environment {
  readonly variables = emptyVariables();
  /** Names of variables whose values are not in the files, such as values from a Secret. */
  readonly unknown = new Set<string>();
  readonly advice: Finding[] = [];
  readonly decide: Finding[] = [];

  /** Sets a variable; an undefined `value` means that the files do not contain it. */
  set(name: string, value: string | undefined): void {
    if (value === undefined) {
      delete this.variables[name];
      this.unknown.add(name);
    } else {
      this.variables[name] = value;
      this.unknown.delete(name);
    }
  }

  /** Adds the variables of an env file. Invalid lines become decisions. */
  addEnvFile(file: string, text: string): void {
    const { variables, unknown, problems } = readEnvFile(text);
    for (const [name, value] of Object.entries(variables)) this.set(name, value);
    for (const name of unknown) this.set(name, undefined);
    for (const { line, message } of problems)
      this.decide.push({ about: `${file}:${line}`, text: `${message}.` });
  }

  /** Marks all unset variables as unknown, because an unknown source may set them. */
  hideUnset(): void {
    for (const { name } of VARIABLES) if (this.variables[name] === undefined) this.unknown.add(name);
  }

  /** Marks all variables as unknown, because an unknown source may override them. */
  hideAll(): void {
    for (const name of Object.keys(this.variables)) delete this.variables[name];
    this.hideUnset();
  }
}

/** A workload that may run the rate limit service: a compose service or a Kubernetes container. */
export interface Workload {
  readonly file: string;
  /** Title in messages: `service ratelimit`, `container ratelimit of Deployment ratelimit`. */
  readonly title: string;
  /** Names that `--service` accepts; messages suggest the first. */
  readonly names: readonly string[];
  /** Image; '' if unset. */
  readonly image: string;
  /** Command, arguments and entrypoint, any of which may name the program. */
  readonly command: readonly string[];
  readonly environment: Environment;
  /** Names of the ConfigMaps that its pod mounts. */
  readonly configMaps: readonly string[];
  /** Findings about the health checks. */
  readonly decide: readonly Finding[];
}

/** The workload chosen as the rate limit service, and why. */
export interface ChosenWorkload {
  readonly workload: Workload;
  /** Reason as a clause: `its image is envoyproxy/ratelimit:master`. */
  readonly because: string;
}

/**
 * Returns the workload that runs the rate limit service, or the one that `wantedName` names. `workloads` must not be
 * empty.
 */
export function chooseWorkload(
  workloads: readonly Workload[],
  wantedName: string | undefined,
): ChosenWorkload {
  const named = workloads.filter(({ names }) => wantedName !== undefined && names.includes(wantedName));
  const known = workloads.flatMap((workload) => {
    const because = evidenceOf(workload);
    return because === undefined ? [] : [{ workload, because }];
  });
  const [only, ...others] =
    wantedName === undefined
      ? known
      : named.map((workload) => ({ workload, because: '--service selects it' }));
  if (only !== undefined && others.length === 0) return only;
  const problem =
    wantedName !== undefined
      ? `${only === undefined ? 'there is no service' : 'there are several services with the name'} "${wantedName}"`
      : only === undefined
        ? 'the rate limit service cannot be detected by its image or command'
        : 'several services may be the rate limit service';
  const candidates = only === undefined ? workloads : [only, ...others].map(({ workload }) => workload);
  const list = candidates.map(({ title, names, file }) => `${names[0]} (${title} in ${file})`).join(', ');
  throw new InputError(`${problem}; set --service to one of ${list}`);
}

/** Returns a clause that says why a workload is the rate limit service; undefined if nothing shows that it is. */
function evidenceOf({ image, command }: Workload): string | undefined {
  if (isRatelimitImage(image)) return `its image is ${image}`;
  const runsIt = command.some((word) => /(?:^|[\s/])ratelimit(?=$|[\s;&])/.test(word));
  return runsIt ? 'it runs ratelimit' : undefined;
}

/** Returns whether an image is the reference's or weir's, by its name without registry, tag and digest. */
function isRatelimitImage(image: string): boolean {
  const name = /([^/]*)$/.exec(image.replace(/@.*$/, ''))?.[1]?.replace(/:.*$/, '') ?? '';
  return /^(?:envoy-?)?rate-?limit(?:er)?(?:-service)?$|^weir$/.test(name);
}

/** Reports a health check whose command, given as `words`, uses a program that the image of weir does not contain. */
export function healthFindings(about: string, words: readonly string[]): readonly Finding[] {
  const program = /(?:^|[\s/;&|])(wget|curl|nc|grpc_health_probe|grpc-health-probe)(?=$|\s)/.exec(
    words.join(' '),
  )?.[1];
  if (program === undefined) return [];
  const text =
    `this check would fail, because the weir image does not contain ${program}. Run \`weir health\` ` +
    'instead.';
  return [{ about, text }];
}
