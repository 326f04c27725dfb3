import type { OpenedPart } from '../../config/manifests/config-maps.js';
import type { YamlMap } from '../../config/yaml/yaml-document.js';
import type { Finding } from '../findings.js';
import type { Input } from './input.js';

/** The variables of a service that the files contain. */
export interface Environment {
  readonly variables: Readonly<Record<string, string>>;
  /** Names of variables whose values are not in the files, such as values from a Secret. */
  readonly unknown: ReadonlySet<string>;
  /** Findings about variables that come from other sources. */
  readonly same: readonly Finding[];
  readonly decide: readonly Finding[];
}

export const NO_ENVIRONMENT: Environment = { variables: {}, unknown: new Set(), same: [], decide: [] };

/** A mount of the container. */
export interface Mount {
  /** Absolute path in the container. */
  readonly target: string;
  readonly source: MountSource;
}

export type MountSource =
  /** A file or directory on this machine. */
  | { readonly kind: 'path'; readonly path: string }
  /** Text in one of the files. */
  | { readonly kind: 'text'; readonly name: string; readonly part: OpenedPart; readonly file: string }
  /** A ConfigMap. `files` maps its keys to paths below the target; undefined mounts all keys under their own names. */
  | { readonly kind: 'config-map'; readonly name: string; readonly files?: ReadonlyMap<string, string> }
  /** A source outside the files, described by `what`: `the volume data`. */
  | { readonly kind: 'elsewhere'; readonly what: string };

/** Path in a document: keys of mappings and 0-based indexes of lists. */
export type YamlPath = readonly (string | number)[];

/** Syntax of a workload's variables. */
export type VariablesForm = 'names-and-values' | 'map-or-lines';

/** A TCP port of a container that is published on the host. */
export interface PublishedPort {
  /** Address of the host on which the port is published; '' for all addresses. */
  readonly host: string;
  /** Port of the host; undefined if docker chooses it. */
  readonly published: number | undefined;
  /** Port of the container. */
  readonly target: number;
}

/** Type of deployment of a workload, which determines the commands in the next steps. */
export type Deployed =
  | {
      readonly by: 'compose';
      readonly service: string;
      /** Files that compose merges, in the order of its `-f` options. */
      readonly files: readonly string[];
      /** Whether any file has a `build` for the service. */
      readonly isBuilt: boolean;
      /** `pull_policy` of the service; '' if unset. */
      readonly pullPolicy: string;
      /** Published ports; undefined if the service shares the network of the host. */
      readonly ports: readonly PublishedPort[] | undefined;
      /** Whether the complete definition of the service is in the file to change. */
      readonly isInOneFile: boolean;
    }
  /** A Kubernetes workload. `owner` is `deployment/ratelimit`, with `-n` and a namespace if one is set. */
  | {
      readonly by: 'kubectl';
      readonly owner: string;
      readonly container: string;
      /** Whether it has a pod template, which a patch can change and `kubectl rollout` can follow. */
      readonly isPatchable: boolean;
      /** Whether the file is the output of `kubectl get -o yaml` rather than an applied manifest. */
      readonly isSnapshot: boolean;
      /** `requests`: all probes request `/healthcheck`. */
      readonly probes: 'none' | 'requests' | 'others';
    }
  /** Envoy Gateway runs the service. Its configuration is a manifest, values of its chart, or a separate file. */
  | { readonly by: 'envoy-gateway'; readonly as: 'manifest' | 'values' | 'file' }
  | { readonly by: 'chart' };

/** A workload that may run the rate limit service: a compose service, a Kubernetes container or a chart. */
export interface Workload {
  readonly input: Input;
  /** Title in messages: `service ratelimit`, `container ratelimit of Deployment ratelimit`. */
  readonly title: string;
  /** Names that `--service` accepts; messages suggest the first. */
  readonly names: readonly string[];
  /** Image; '' if unset. */
  readonly image: string;
  /** Command, arguments and entrypoint, any of which may name the program. */
  readonly command: readonly string[];
  readonly environment: Environment;
  readonly mounts: readonly Mount[];
  /** Findings about the workload itself, apart from its variables. */
  readonly same: readonly Finding[];
  readonly decide: readonly Finding[];
  readonly edit: Editable;
  readonly deployed: Deployed;
  /** Policies in the file itself; undefined for workloads that read policies from a mount or a management server. */
  readonly policies?: readonly OpenedPart[];
}

/** Positions of the image and variables in a document. */
export interface Editable {
  /** Mapping that the paths start from. */
  readonly root: YamlMap;
  /** Path of the image. Charts have separate fields for repository and tag. */
  readonly image: YamlPath;
  readonly tag?: YamlPath;
  /** Path of the variables. */
  readonly variables: YamlPath;
  readonly form: VariablesForm;
  /** Fields for building the image, which weir's image does not need. */
  readonly drop: readonly string[];
}

/** The workload chosen as the rate limit service, and why. */
export interface ChosenWorkload {
  readonly workload: Workload;
  /** Reason as a clause: `its image is envoyproxy/ratelimit:master`. */
  readonly because: string;
}

/** Variables that only the reference and weir read. */
const SERVICE_VARIABLES = ['RUNTIME_ROOT', 'RUNTIME_SUBDIRECTORY', 'RUNTIME_APPDIRECTORY'];

/**
 * Returns the workload that runs the rate limit service, or the one that `wantedName` names. Returns an error message
 * if the choice is ambiguous. `workloads` must not be empty.
 */
export function chooseWorkload(
  workloads: readonly Workload[],
  wantedName: string | undefined,
): ChosenWorkload | string {
  const nameList = (some: readonly Workload[]): string =>
    some.map(({ title, names, input }) => `${names[0]} (${title} in ${input.file})`).join(', ');
  if (wantedName !== undefined) {
    const named = workloads.filter(({ names }) => names.includes(wantedName));
    const [workload] = named;
    if (workload !== undefined && named.length === 1) return { workload, because: '--service selects it' };
    const found = workload === undefined ? 'there is no service' : 'there are several services with the name';
    return (
      `${found} ${JSON.stringify(wantedName)}; set --service to one of ` +
      `${nameList(named.length > 0 ? named : workloads)}`
    );
  }
  const evidence = workloads.map((workload) => ({ workload, ...evidenceOf(workload) }));
  const most = Math.max(...evidence.map(({ weight }) => weight));
  const best = evidence.filter(({ weight }) => weight === most);
  const [pick] = best;
  if (most > 0 && pick !== undefined && best.length === 1)
    return { workload: pick.workload, because: pick.because };
  return most > 0
    ? 'several services may be the rate limit service; set --service to one of ' +
        `${nameList(best.map(({ workload }) => workload))}`
    : 'the rate limit service cannot be detected by its image or command; set --service to one of ' +
        `${nameList(workloads)}`;
}

function evidenceOf({ image, command, environment, names }: Workload): {
  readonly weight: number;
  readonly because: string;
} {
  if (isRatelimitImage(image)) return { weight: 3, because: `its image is ${image}` };
  const program = command.find((word) => /(?:^|[\s/])ratelimit(?=$|[\s;&])/.test(word));
  if (program !== undefined) return { weight: 3, because: 'it runs ratelimit' };
  const own = SERVICE_VARIABLES.find((name) => environment.variables[name] !== undefined);
  if (own !== undefined) return { weight: 2, because: `it sets the variable ${own}` };
  if (image === '' && names.some((name) => /rate-?limit/i.test(name)))
    return { weight: 1, because: 'its name suggests a rate limit service' };
  return { weight: 0, because: '' };
}

/** Returns whether an image is the reference's or weir's, by its name without registry, tag and digest. */
function isRatelimitImage(image: string): boolean {
  const name = /([^/]*)$/.exec(image.replace(/@.*$/, ''))?.[1]?.replace(/:.*$/, '') ?? '';
  return /^(?:envoy-?)?rate-?limit(?:er)?(?:-service)?$|^weir$/.test(name);
}
