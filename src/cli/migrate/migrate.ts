import { type LoadedPolicies, loadParts, loadPolicies } from '../../config/files/load-policies.js';
import { manifestsOf } from '../../config/manifests/config-maps.js';
import { shellText } from '../../config/show/shell-text.js';
import { quantity } from '../../runtime/texts.js';
import { loadOptions } from '../../server/policies/policy-place.js';
import type { Settings } from '../../server/settings/settings-table.js';
import { readArguments } from '../arguments.js';
import { EXIT, type Io, usageError } from '../io.js';
import { fileProgress } from '../load-options.js';
import { InputError } from './input.js';
import { readInstallation } from './installation.js';
import { type FoundPolicies, locatePolicies } from './locate-policies.js';
import { findInPolicies } from './policy-findings.js';
import { type Finding, type Findings, type Report, reportJson, reportText } from './report.js';
import { findInVariables } from './variable-findings.js';

const OPTIONS = {
  env: { type: 'string', multiple: true },
  service: { type: 'string', multiple: true },
  json: { type: 'boolean' },
} as const;

/**
 * Runs `weir migrate`: reports what changes if weir replaces an installation of envoyproxy/ratelimit. Contacts no
 * server, and writes no file.
 */
export async function runMigrate(args: readonly string[], io: Pick<Io, 'out' | 'err'>): Promise<number> {
  const { positionals, values } = readArguments('migrate', args, OPTIONS);
  const { env: envFiles = [], service = [] } = values;
  if (positionals.length + envFiles.length === 0)
    throw usageError('migrate', 'specify the files of the installation, or a directory');
  if (service.length > 1)
    throw usageError(
      'migrate',
      `--service accepts only one service; run weir migrate once for each of ${service.map(shellText).join(', ')}`,
    );
  const report = makeReport(positionals, envFiles, service[0], io);
  io.out(values.json === true ? reportJson(report) : reportText(report));
  return report.decide.length === 0 ? EXIT.OK : EXIT.FAILED;
}

/** Advice if no file sets a variable. */
const NO_VARIABLES: Finding = {
  about: 'variables',
  text:
    'the given files set no variables, so weir migrate treats all variables as unset. If the service has ' +
    'variables, specify their file with --env.',
};

const MISSING_MAP =
  'the pod mounts this ConfigMap, but the given files do not contain it. If it contains policies, save its ' +
  'manifest with `kubectl get configmap <name> -o yaml`, and also pass that file.';

function makeReport(
  paths: readonly string[],
  envFiles: readonly string[],
  service: string | undefined,
  io: Pick<Io, 'err'>,
): Report {
  const { root, inputs, pick, environment } = readInstallation(paths, envFiles, service);
  const { settings, keep, ...variables } = findInVariables(environment.variables, environment.unknown);
  const mounted = pick?.workload.configMaps ?? [];
  const found = locatePolicies(root, inputs, mounted, settings);
  // Without a workload, the policies are the only input, so a missing policy is an error.
  if (found.kind === 'not-found' && pick === undefined) throw new InputError(found.text);
  const policies = findingsOf(found, settings, fileProgress('migrate', io));
  const manifests = inputs.flatMap(({ documents }) => manifestsOf(documents));
  const missing = mounted
    .filter((name) => !manifests.some((one) => one.kind === 'ConfigMap' && one.name === name))
    .map((name) => ({ about: `ConfigMap ${name}`, text: MISSING_MAP }));
  const lacksVariables = pick === undefined && !inputs.some(({ format }) => format === 'variables');
  return {
    service: pick && { title: pick.workload.title, file: pick.workload.file, because: pick.because },
    policies: policies.heading,
    files: policies.files,
    decide: [
      ...policies.decide,
      ...(pick?.workload.decide ?? []),
      ...environment.decide,
      ...variables.decide,
    ],
    advice: [
      ...(lacksVariables ? [NO_VARIABLES] : []),
      ...missing,
      ...policies.advice,
      ...environment.advice,
      ...variables.advice,
    ],
    unused: variables.unused,
    keep,
  };
}

/** Findings about the policies, and a heading with their location. */
interface PolicyFindings extends Findings {
  readonly heading: string;
  readonly files: readonly string[];
}

function findingsOf(
  found: FoundPolicies,
  settings: Settings,
  onFile: (read: number, of: number) => void,
): PolicyFindings {
  const none = { decide: [], advice: [], unused: [], files: [] };
  switch (found.kind) {
    case 'files': {
      const loaded = loadPolicies(found.places, { ...loadOptions(settings), emptyIsError: true, onFile });
      const { files } = loaded;
      const heading = `${rulesIn(loaded)} in ${quantity(files.length, 'policy file')}: ${files.join(', ')}`;
      return { ...findInPolicies(loaded), heading, files };
    }
    case 'parts': {
      const loaded = loadParts(found.parts, loadOptions(settings));
      return { ...findInPolicies(loaded), heading: `${rulesIn(loaded)} in the ${found.of}`, files: [] };
    }
    case 'management-server': {
      const heading =
        'The policies come from the management server in CONFIG_GRPC_XDS_SERVER_URL. weir migrate does not ' +
        'read them.';
      return { ...none, heading };
    }
    case 'not-found': {
      const decide = [{ about: 'policies', text: `${found.text}.` }];
      return { ...none, decide, heading: 'The policies were not found.' };
    }
  }
}

/** Returns `3 rules of 1 domain (shop)`. */
function rulesIn({ policySet }: LoadedPolicies): string {
  const domains = [...policySet.domains.values()];
  const rules = domains.reduce((sum, domain) => sum + domain.rules.length, 0);
  const names = domains.map(({ domain }) => shellText(domain)).join(', ');
  return `${quantity(rules, 'rule')} of ${quantity(domains.length, 'domain')}${names === '' ? '' : ` (${names})`}`;
}
