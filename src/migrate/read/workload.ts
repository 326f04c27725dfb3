import type { OpenedPart } from '../../config/manifests/config-maps.js';
import type { YamlMap } from '../../config/yaml/yaml-document.js';
import type { Finding } from '../findings.js';
import type { Input } from './input.js';

/** The variables of a service, as far as the files tell them. */
export interface Environment {
  readonly variables: Readonly<Record<string, string>>;
  /** Names of those that are set to what the files do not tell, such as a Secret. */
  readonly unknown: ReadonlySet<string>;
  /** What is said of variables that come from elsewhere. */
  readonly same: readonly Finding[];
  readonly decide: readonly Finding[];
}

export const NO_ENVIRONMENT: Environment = { variables: {}, unknown: new Set(), same: [], decide: [] };

/** What lies at a path of the container. */
export interface Mount {
  /** Absolute, in the container. */
  readonly target: string;
  readonly source: MountSource;
}

export type MountSource =
  /** A file or directory, as seen from here. */
  | { readonly kind: 'path'; readonly path: string }
  /** `files`: paths below the target, by key of the ConfigMap; undefined: all keys, by their names. */
  /** A text that stands in one of the files. */
  | { readonly kind: 'text'; readonly name: string; readonly part: OpenedPart; readonly file: string }
  | { readonly kind: 'config-map'; readonly name: string; readonly files?: ReadonlyMap<string, string> }
  /** `what`: `the volume data`. */
  | { readonly kind: 'elsewhere'; readonly what: string };

/** Keys and 0-based places that lead through a document. */
export type YamlPath = readonly (string | number)[];

/** How the variables of a workload are written. */
export type VariablesForm = 'names-and-values' | 'map-or-lines';

/** A TCP port of a container that is one of the machine, too. */
export interface PublishedPort {
  /** The address of the machine that it is published on; '' for all of them. */
  readonly host: string;
  /** The machine's port; undefined where docker chooses one. */
  readonly published: number | undefined;
  /** The container's port. */
  readonly target: number;
}

/** How a workload is deployed, by which one knows the commands for that. */
export type Deployed =
  | {
      readonly by: 'compose';
      readonly service: string;
      /** Those that compose puts together, in the order of its `-f`. */
      readonly files: readonly string[];
      /** Whether it has a `build`, in any file. */
      readonly isBuilt: boolean;
      /** When docker compose pulls the image, or builds it; '' where no file says so. */
      readonly pullPolicy: string;
      /** What its files publish; undefined where it shares the network of the machine. */
      readonly ports: readonly PublishedPort[] | undefined;
      /** Whether all that is said of it stands in the file that is changed. */
      readonly isInOneFile: boolean;
    }
  /** `owner`: `deployment/ratelimit`, with `-n` and its namespace if it has one. */
  | {
      readonly by: 'kubectl';
      readonly owner: string;
      readonly container: string;
      /** Whether it has a template of pods, which a patch changes and `kubectl rollout` follows. */
      readonly isPatchable: boolean;
      /** Whether the file is what a cluster said (`kubectl get -o yaml`), and not what was given to it. */
      readonly isSnapshot: boolean;
      /** `requests`: all of them ask `/healthcheck`. */
      readonly probes: 'none' | 'requests' | 'others';
    }
  /** Envoy Gateway runs it: its configuration is a manifest, values of its chart, or a file by itself. */
  | { readonly by: 'envoy-gateway'; readonly as: 'manifest' | 'values' | 'file' }
  | { readonly by: 'chart' };

/** What may run the rate limit service: a service of compose, a container of Kubernetes, a chart. */
export interface Workload {
  readonly input: Input;
  /** For people: `service ratelimit`, `container ratelimit of Deployment ratelimit`. */
  readonly title: string;
  /** What --service may call it; the first is the one to be offered. */
  readonly names: readonly string[];
  /** '' where none is written. */
  readonly image: string;
  /** Everything that may name the program: command, arguments, entrypoint. */
  readonly command: readonly string[];
  readonly environment: Environment;
  readonly mounts: readonly Mount[];
  /** What its files say that concerns the move, beside variables. */
  readonly same: readonly Finding[];
  readonly decide: readonly Finding[];
  readonly edit: Editable;
  readonly deployed: Deployed;
  /** Policies that stand in the file itself; undefined where they lie elsewhere. */
  readonly policies?: readonly OpenedPart[];
}

/** Where image and variables are written. */
export interface Editable {
  /** The mapping from which the paths lead. */
  readonly root: YamlMap;
  /** To the image, a text; charts have repository and tag apart. */
  readonly image: YamlPath;
  readonly tag?: YamlPath;
  /** To the variables. */
  readonly variables: YamlPath;
  readonly form: VariablesForm;
  /** Fields that a build of the image needs, and weir's does not. */
  readonly drop: readonly string[];
}

/** A workload, and why it is held for the rate limit service. */
export interface Pick {
  readonly workload: Workload;
  /** A clause: `its image is envoyproxy/ratelimit:master`. */
  readonly because: string;
}

/** Variables that nothing but the reference, and weir, reads. */
const OWN_VARIABLES = ['RUNTIME_ROOT', 'RUNTIME_SUBDIRECTORY', 'RUNTIME_APPDIRECTORY'];

/**
 * The workload that runs the rate limit service, or the one that `asked` names; a sentence where that cannot be told.
 * There is at least one.
 */
export function pickWorkload(workloads: readonly Workload[], asked: string | undefined): Pick | string {
  const offered = (some: readonly Workload[]): string =>
    some.map(({ title, names, input }) => `${names[0]} (${title} in ${input.file})`).join(', ');
  if (asked !== undefined) {
    const named = workloads.filter(({ names }) => names.includes(asked));
    const [workload] = named;
    if (workload !== undefined && named.length === 1) return { workload, because: '--service names it' };
    const found = workload === undefined ? 'there is no service' : 'several services have the name';
    return `${found} ${JSON.stringify(asked)}; --service takes ${offered(named.length > 0 ? named : workloads)}`;
  }
  const signs = workloads.map((workload) => ({ workload, ...signOf(workload) }));
  const most = Math.max(...signs.map(({ weight }) => weight));
  const best = signs.filter(({ weight }) => weight === most);
  const [pick] = best;
  if (most > 0 && pick !== undefined && best.length === 1)
    return { workload: pick.workload, because: pick.because };
  return most > 0
    ? `several services may be the rate limit service; name one with ` +
        `--service: ${offered(best.map(({ workload }) => workload))}`
    : `no service runs ratelimit by its image or command; name one with --service: ${offered(workloads)}`;
}

function signOf({ image, command, environment, names }: Workload): {
  readonly weight: number;
  readonly because: string;
} {
  if (isRatelimitImage(image)) return { weight: 3, because: `its image is ${image}` };
  const program = command.find((word) => /(?:^|[\s/])ratelimit(?=$|[\s;&])/.test(word));
  if (program !== undefined) return { weight: 3, because: 'it runs ratelimit' };
  const own = OWN_VARIABLES.find((name) => environment.variables[name] !== undefined);
  if (own !== undefined) return { weight: 2, because: `it has the variable ${own}` };
  if (image === '' && names.some((name) => /rate-?limit/i.test(name)))
    return { weight: 1, because: 'its name says so' };
  return { weight: 0, because: '' };
}

/** Whether the last part of an image's name, without registry, tag and digest, is the service's, or weir's. */
function isRatelimitImage(image: string): boolean {
  const name = /([^/]*)$/.exec(image.replace(/@.*$/, ''))?.[1]?.replace(/:.*$/, '') ?? '';
  return /^(?:envoy-?)?rate-?limit(?:er)?(?:-service)?$|^weir$/.test(name);
}
