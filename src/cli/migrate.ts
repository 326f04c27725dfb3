import { basename, dirname, relative, sep } from 'node:path';
import { version } from '../assets.js';
import { loadParts, loadPolicies } from '../config/files/load-policies.js';
import { readConfigFile } from '../config/files/policy-paths.js';
import type { OpenedPart } from '../config/manifests/config-maps.js';
import { openFile } from '../config/read/policy-source.js';
import { shellText } from '../config/show/shell-text.js';
import { type Finding, type Findings, NO_FINDINGS } from '../migrate/findings.js';
import { findInPolicies } from '../migrate/policy-findings.js';
import { chartSourceMessage, type Installation, readInstallation } from '../migrate/read/installation.js';
import { type FoundPolicies, locatePolicies } from '../migrate/read/locate-policies.js';
import { judgeByReference } from '../migrate/read/reference-verdicts.js';
import { type Report, reportJson, reportText } from '../migrate/report.js';
import { findInVariables, type VariableFindings } from '../migrate/variable-findings.js';
import { convertedReport } from '../migrate/write/converted-policies.js';
import { makeDeployment } from '../migrate/write/deployment.js';
import { nextSteps } from '../migrate/write/next-steps.js';
import { quantity } from '../quantity.js';
import { loadOptions } from '../server/settings/policy-place.js';
import type { Settings } from '../server/settings/settings-table.js';
import { writeFiles } from '../written-files.js';
import { readArguments } from './arguments.js';
import { EXIT, type Io } from './io.js';
import { fileProgress } from './load-options.js';

const OPTIONS = {
  env: { type: 'string', multiple: true },
  service: { type: 'string', multiple: true },
  image: { type: 'string' },
  write: { type: 'string' },
  force: { type: 'boolean' },
  json: { type: 'boolean' },
} as const;

/** Advice if a file to be written already exists. */
const OVERWRITE_ADVICE = 'choose another directory, or overwrite the files with --force';

/**
 * Runs `weir migrate`: reports what changes if weir replaces an installation of envoyproxy/ratelimit. Contacts no
 * server.
 */
export async function runMigrate(args: readonly string[], io: Pick<Io, 'out' | 'err'>): Promise<number> {
  const parsed = readArguments('migrate', args, OPTIONS);
  if (typeof parsed === 'string') {
    io.err(parsed);
    return EXIT.USAGE;
  }
  const { positionals, values } = parsed;
  const envFiles = values.env ?? [];
  if (positionals.length + envFiles.length === 0) {
    io.err('weir migrate: specify the files of the installation, or a directory; see weir migrate --help\n');
    return EXIT.USAGE;
  }
  if (values.write === undefined && (values.image !== undefined || values.force === true)) {
    io.err('weir migrate: --image and --force require --write; see weir migrate --help\n');
    return EXIT.USAGE;
  }
  if (values.service !== undefined && values.service.length > 1) {
    const services = values.service.map(shellText).join(', ');
    io.err(
      `weir migrate: --service accepts only one service; run weir migrate once for each of ${services}, ` +
        'with a different folder in --write (see weir migrate --help)\n',
    );
    return EXIT.USAGE;
  }
  if (values.write === '') {
    io.err('weir migrate: the folder name in --write is empty; specify a folder (see weir migrate --help)\n');
    return EXIT.USAGE;
  }
  const installation = readInstallation(positionals, envFiles, values.service?.[0]);
  if (typeof installation !== 'string' && installation.conversions.length > 0)
    return reportConversion(installation, values, io);
  const made = typeof installation === 'string' ? installation : makeReport(installation, io);
  if (typeof installation === 'string' || typeof made === 'string') {
    io.err(`weir migrate: ${String(typeof made === 'string' ? made : installation)}\n`);
    return EXIT.FAILED;
  }
  const { write, image = `weir:${version()}`, force = false } = values;
  const done =
    write === undefined ? made.report : writeDeployment(write, { installation, image, force, ...made });
  if (typeof done === 'string') {
    io.err(`weir migrate: ${done}\n`);
    return EXIT.FAILED;
  }
  io.out(values.json === true ? reportJson(done) : reportText(done));
  return done.decide.length === 0 ? EXIT.OK : EXIT.FAILED;
}

/** Reports how limits of another service convert to policies, and writes the policies if `--write` is set. */
function reportConversion(
  { conversions, inputs }: Installation,
  {
    write,
    force = false,
    json,
  }: { readonly write?: string; readonly force?: boolean; readonly json?: boolean },
  io: Pick<Io, 'out' | 'err'>,
): number {
  const { report, files } = convertedReport(conversions, inputs);
  const keep = inputs.map(({ file }) => file);
  const refused =
    write === undefined ? undefined : writeFiles(write, files, OVERWRITE_ADVICE, { force, keep });
  if (refused !== undefined) {
    io.err(`weir migrate: ${refused}\n`);
    return EXIT.FAILED;
  }
  const written = write === undefined ? undefined : { directory: write, files, isAdded: false };
  io.out(json === true ? reportJson({ ...report, written }) : reportText({ ...report, written }));
  return report.decide.length === 0 ? EXIT.OK : EXIT.FAILED;
}

/** Advice if no file sets a variable. */
const NO_VARIABLES: Finding = {
  about: 'variables',
  text:
    'the given files set no variables, so weir migrate treats all variables as unset. If the service has ' +
    'variables, specify their file with --env.',
};

interface ReportWithSettings {
  readonly report: Report;
  readonly settings: Settings;
}

function makeReport(
  { root, inputs, pick, environment, same, decide }: Installation,
  io: Pick<Io, 'err'>,
): ReportWithSettings | string {
  const variables = findInVariables(environment.variables, environment.unknown);
  const { settings, keep } = variables;
  const found = locatePolicies(root, inputs, pick?.workload, settings);
  // Without a workload, the policies are the only input, so a missing policy is an error.
  if (found.kind === 'not-found' && pick === undefined) return found.text;
  const policies = findingsOf(found, variables, fileProgress('migrate', io));
  const chart = policies.files.find((file) => basename(file) === 'Chart.yaml');
  if (chart !== undefined) return chartSourceMessage(dirname(chart));
  const lacksVariables = pick === undefined && !inputs.some(({ format }) => format === 'variables');
  const report = {
    service: pick && { title: pick.workload.title, file: pick.workload.input.file, because: pick.because },
    policies: policies.heading,
    directory: policies.directory,
    files: policies.files,
    decide: [...policies.decide, ...decide, ...environment.decide, ...variables.decide],
    advice: [...(lacksVariables ? [NO_VARIABLES] : []), ...policies.advice, ...variables.advice],
    same: [...policies.same, ...same, ...environment.same, ...variables.same],
    better: [...policies.better, ...variables.better],
    unused: [...variables.unused],
    keep,
    written: undefined,
  };
  return { report, settings };
}

/** Writes the files to deploy. Returns the updated report, or an error message if nothing was written. */
function writeDeployment(
  directory: string,
  made: ReportWithSettings & {
    readonly installation: Installation;
    readonly image: string;
    readonly force: boolean;
  },
): Report | string {
  const { installation, image, force, settings } = made;
  const target = { image, variables: made.report.keep };
  const deployment = makeDeployment(installation, target, made.report);
  const decided = new Set(deployment.isAdded ? Object.keys(target.variables) : []);
  const report = {
    ...made.report,
    // The written files set the old defaults explicitly, so these decisions are no longer needed.
    decide: [...deployment.decide, ...made.report.decide.filter(({ about }) => !decided.has(about))],
  };
  const page = nextSteps({ directory, installation, deployment, target, report, settings });
  const files = [...deployment.files, { path: 'README.md', content: page, note: 'next steps' }];
  const keep = [...installation.inputs.map(({ file }) => file), ...report.files];
  const refused = writeFiles(directory, files, OVERWRITE_ADVICE, { force, keep });
  return refused ?? { ...report, written: { directory, files, isAdded: deployment.isAdded } };
}

/**
 * Reads a policy file again. Returns an empty list if the file cannot be read, because the load already reported this
 * error.
 */
function readAgain(file: string): readonly OpenedPart[] {
  try {
    return [{ name: file, opened: openFile(file, readConfigFile(file)) }];
  } catch {
    return [];
  }
}

/** Returns the findings about the policies, and a heading with their location. */
function findingsOf(
  found: FoundPolicies,
  { settings }: VariableFindings,
  onFile: (read: number, of: number) => void,
): Findings & {
  readonly heading: string;
  readonly files: readonly string[];
  /** Directory that contains all of the files; undefined if a file is outside it. */
  readonly directory?: string | undefined;
} {
  switch (found.kind) {
    case 'files': {
      const loaded = loadPolicies(found.places, { ...loadOptions(settings), emptyIsError: true, onFile });
      const { length } = loaded.files;
      const { directory } = found;
      const isInDirectory =
        directory !== undefined &&
        loaded.files.every((file) => !relative(directory, file).startsWith(`..${sep}`));
      const where = isInDirectory ? directory : loaded.files.join(', ');
      const heading = `${quantity(length, 'policy file')} in ${where}`;
      // `loadPolicies` does not return the documents, so the files are read again, but only if one has an error.
      const bad = new Set(loaded.errors.map(({ file }) => file));
      const parts =
        bad.size === 0
          ? []
          : loaded.files.flatMap((file, at) => {
              onFile(at, length);
              return readAgain(file);
            });
      const verdicts = judgeByReference(parts, settings.mergeDomains, (name) => bad.has(name));
      return {
        ...findInPolicies(loaded, verdicts),
        heading,
        files: loaded.files,
        directory: isInDirectory ? directory : undefined,
      };
    }
    case 'parts': {
      const loaded = loadParts(found.parts, loadOptions(settings));
      const bad = new Set(
        found.parts.flatMap(({ name, opened }) => (opened.problems.errorCount > 0 ? [name] : [])),
      );
      const verdicts = judgeByReference(found.parts, settings.mergeDomains, (name) => bad.has(name));
      return { ...findInPolicies(loaded, verdicts), heading: `The policies in ${found.of}`, files: [] };
    }
    case 'management-server':
      return {
        ...NO_FINDINGS,
        heading:
          'The policies come from the management server in CONFIG_GRPC_XDS_SERVER_URL. weir migrate ' +
          'does not read them.',
        files: [],
      };
    case 'not-found': {
      const finding = { about: 'policies', text: `${found.text}.` };
      return { ...NO_FINDINGS, decide: [finding], heading: 'The policies were not found.', files: [] };
    }
  }
}
