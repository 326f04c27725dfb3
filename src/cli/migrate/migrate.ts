import { type LoadedPolicies, loadParts, loadPolicies } from '../../config/files/load-policies.js';
import { manifestsOf } from '../../config/manifests/config-maps.js';
import { type ConfigProblem, formatProblem } from '../../config/yaml/config-problem.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { shellText } from '../../runtime/printable.js';
import { plural } from '../../runtime/texts.js';
import { loadOptions } from '../../server/policies/policy-place.js';
import type { Settings } from '../../server/settings/settings-table.js';
import { readArguments } from '../arguments.js';
import { EXIT, type Io, usageError } from '../io.js';
import { InputError } from './input.js';
import { readInstallation } from './installation.js';
import { type FoundPolicies, locatePolicies } from './locate-policies.js';
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
export async function runMigrate(args: readonly string[], io: Pick<Io, 'out'>): Promise<number> {
  const { positionals, values } = readArguments('migrate', args, OPTIONS);
  const { env: envFiles = [], service = [] } = values;
  if (positionals.length + envFiles.length === 0)
    throw usageError('migrate', 'specify the files of the installation, or a directory');
  if (service.length > 1)
    throw usageError(
      'migrate',
      `--service accepts only one service; run weir migrate once for each of ${service.map(shellText).join(', ')}`,
    );
  const report = makeReport(positionals, envFiles, service[0]);
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
): Report {
  const { root, inputs, pick, environment } = readInstallation(paths, envFiles, service);
  const { settings, keep, ...variables } = findInVariables(environment.variables, environment.unknown);
  const mounted = pick?.workload.configMaps ?? [];
  const found = locatePolicies(root, inputs, mounted, settings);
  // Without a workload, the policies are the only input, so a missing policy is an error.
  if (found.kind === 'not-found' && pick === undefined) throw new InputError(found.text);
  const policies = findingsOf(found, settings);
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

function findingsOf(found: FoundPolicies, settings: Settings): PolicyFindings {
  const none = { decide: [], advice: [], unused: [], files: [] };
  switch (found.kind) {
    case 'files': {
      const loaded = loadPolicies(found.places, { ...loadOptions(settings), emptyIsError: true });
      const { files } = loaded;
      const heading = `${rulesIn(loaded)} in ${plural(files.length, 'policy file')}: ${files.join(', ')}`;
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

/** Formats the content of policies: `3 rules of 1 domain (shop)`. */
function rulesIn({ policySet }: LoadedPolicies): string {
  const domains = [...policySet.domains.values()];
  const rules = domains.reduce((sum, domain) => sum + domain.rules.length, 0);
  const names = domains.map(({ domain }) => shellText(domain)).join(', ');
  return `${plural(rules, 'rule')} of ${plural(domains.length, 'domain')}${names === '' ? '' : ` (${names})`}`;
}

/**
 * Maximum length of a window, in microseconds, that needs no plan for the switch, because it soon starts again anyway.
 */
const MAX_SHORT_WINDOW_MICROS = 60_000_000;

const NOT_LOADED =
  'weir does not load this policy until you correct the errors above. weir loads all other policies.';

function findInPolicies({ policySet, errors, warnings }: LoadedPolicies): Findings {
  const decide = [
    ...errors.map(findingOf),
    ...[...new Set(errors.map(({ file }) => file))].map((about) => ({ about, text: NOT_LOADED })),
  ];
  const advice = warnings.map(findingOf);
  const long: string[] = [];
  for (const { domain, rules, root } of policySet.domains.values()) {
    for (const rule of rules)
      if (windowMicros(rule) > MAX_SHORT_WINDOW_MICROS) long.push(`${rule.path} in domain ${domain}`);
    advice.push(...joinedKeys(root, domain));
  }
  if (long.length > 0) advice.push(counterFinding(long));
  return { decide, advice, unused: [] };
}

function findingOf(problem: ConfigProblem): Finding {
  const text = formatProblem(problem);
  const end = /^.*?:\d+:\d+(?=: )/.exec(text)?.[0].length ?? text.indexOf(': ');
  return { about: text.slice(0, end), text: text.slice(end + 2) };
}

/**
 * Returns the length of a rule's window in microseconds; 0 if the rule has no window or allows no requests, because a
 * fresh counter then allows nothing twice.
 */
function windowMicros({ rate }: CompiledPolicy['rules'][number]): number {
  return rate?.kind === 'window' && rate.requestsPerUnit > 0 ? rate.lengthMicros : 0;
}

/** Finds rules that also match other entries in envoyproxy/ratelimit. */
function joinedKeys(parent: PolicyNode, domain: string): readonly Finding[] {
  const children = [...parent.children()];
  const keys = [...new Set(children.map(({ key }) => key))];
  return children.flatMap((node) => [
    ...keys
      .filter((key) => node.value === '' && node.key.startsWith(`${key}_`))
      .map((key) => ({
        about: `${domain}: ${node.key}`,
        text:
          'envoyproxy/ratelimit joins keys and values with "_", and therefore also applies this rule to an ' +
          `entry with the key ${key} and the value ${node.key.slice(key.length + 1)}. weir applies the rule only ` +
          `to the key ${node.key}. If Envoy sends the entry with the shorter key, add a rule for that entry.`,
      })),
    ...joinedKeys(node, domain),
  ]);
}

function counterFinding(rules: readonly string[]): Finding {
  const shown = rules.slice(0, 3).join(', ');
  const more = rules.length > 3 ? ` and ${rules.length - 3} more` : '';
  return {
    about: 'counters',
    text:
      'all counters start at zero after the switch, so callers can use up to twice their limit in the ' +
      `window in which you switch. These rules have windows longer than a minute: ${shown}${more}. Switch ` +
      'just after such a window begins. Hours begin on the hour, and days at midnight UTC.',
  };
}
