import { readFileSync, statSync } from 'node:fs';
import { loadPolicies } from '../config/files/load-policies.js';
import type { RuntimeLayout } from '../config/files/policy-paths.js';
import { loadOptions, policyPlace } from '../server/settings/policy-place.js';
import type { Settings } from '../server/settings/settings-table.js';
import { readArguments } from './arguments.js';
import { EXIT, type Io } from './io.js';
import { type EnvFile, readEnvFile } from './migrate/env-file.js';
import { findInPolicies } from './migrate/policy-findings.js';
import { type Report, reportJson, reportText } from './migrate/report.js';
import { findInVariables } from './migrate/variable-findings.js';

/** `weir migrate`: what an installation of envoyproxy/ratelimit would be here. Starts nothing and asks nobody. */
export async function runMigrate(args: readonly string[], io: Io): Promise<number> {
  const parsed = readArguments('migrate', args, { env: { type: 'string' }, json: { type: 'boolean' } });
  if (typeof parsed === 'string') {
    io.err(parsed);
    return EXIT.USAGE;
  }
  const { positionals, values } = parsed;
  if (positionals.length > 1 || (positionals.length === 0 && values.env === undefined)) {
    io.err('weir migrate: name one directory, or an env file with --env; see weir migrate --help\n');
    return EXIT.USAGE;
  }
  const report = makeReport(positionals[0], values.env);
  if (typeof report === 'string') {
    io.err(`weir migrate: ${report}\n`);
    return EXIT.FAILED;
  }
  io.out(values.json === true ? reportJson(report) : reportText(report));
  return report.decide.length === 0 ? EXIT.OK : EXIT.FAILED;
}

function makeReport(root: string | undefined, envFile: string | undefined): Report | string {
  let env: EnvFile = { variables: {}, unknown: new Set(), problems: [] };
  if (envFile !== undefined) {
    try {
      env = readEnvFile(readFileSync(envFile, 'utf8'));
    } catch (error) {
      return `the env file cannot be read: ${(error as Error).message}`;
    }
  }
  const { settings, same, better, decide, keep } = findInVariables(env.variables, env.unknown);
  const unread = env.problems.map(({ line, message }) => ({
    about: `${envFile}:${line}`,
    text: `${message}.`,
  }));
  const undecided = [...unread, ...decide];
  if (root === undefined && settings.configType !== 'FILE') {
    return { directory: undefined, files: [], same, better, decide: undecided, keep };
  }
  const place = policiesBelow(root, settings);
  if (place === undefined) {
    return (
      `${JSON.stringify(root ?? settings.runtimeRoot)} is no directory; name the one that RUNTIME_ROOT ` +
      'names, or the one with the policy files'
    );
  }
  const loaded = loadPolicies([place], loadOptions(settings));
  const ofPolicies = findInPolicies(loaded);
  return {
    directory: place.directory,
    files: loaded.files,
    same: [...ofPolicies.same, ...same],
    better: [...ofPolicies.better, ...better],
    decide: [...ofPolicies.decide, ...undecided],
    keep,
  };
}

/** The policies of an installation: `root` stands for RUNTIME_ROOT, or is the directory of the files itself. */
function policiesBelow(root: string | undefined, settings: Settings): RuntimeLayout | undefined {
  const runtime = { ...settings, configPath: '', runtimeRoot: root ?? settings.runtimeRoot };
  const places = [runtime, { ...runtime, runtimeSubdirectory: '' }].map(policyPlace);
  for (const place of places) if (typeof place !== 'string' && isDirectory(place.directory)) return place;
  const [place] = places;
  if (root === undefined || typeof place === 'string' || place === undefined || !isDirectory(root))
    return undefined;
  return { ...place, directory: root, beside: false };
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Missing, below a file, or not to be looked into: no directory for us.
    return false;
  }
}
