import { join } from 'node:path';
import { type WrittenFile, writtenText } from '../written-files.js';
import type { Finding, Findings } from './findings.js';

/** Report of `weir migrate`. */
export interface Report extends Findings {
  /** Workload that runs the service, and why it was chosen; undefined if no file contains a workload. */
  readonly service: { readonly title: string; readonly file: string; readonly because: string } | undefined;
  /** Sentence about the location of the policies. */
  readonly policies: string;
  /** Directory that contains all policy files; undefined if they have no common directory. */
  readonly directory: string | undefined;
  readonly files: readonly string[];
  /** Variables to add so that unset variables keep the defaults of the reference. */
  readonly keep: Readonly<Record<string, string>>;
  /** Files that `--write` wrote; undefined without `--write`. */
  readonly written: WrittenReport | undefined;
}

interface WrittenReport {
  readonly directory: string;
  readonly files: readonly WrittenFile[];
  /** Whether the variables in {@link Report.keep} were written to one of the files. */
  readonly isAdded: boolean;
}

/** Titles of the lists, in the order of the report; necessary decisions are first. */
const TITLES = [
  ['decide', 'Needs a decision'],
  ['advice', 'Good to know'],
  ['same', 'Behaves the same'],
  ['better', 'Better in weir'],
  ['unused', 'Has no effect in weir'],
] as const;

const NO_DECISIONS = 'No decisions are needed.\n';

/** Formats the report as text. */
export function reportText(report: Report): string {
  const { service, policies, keep, written } = report;
  const found = service && `Selected ${service.title} in ${service.file}, because ${service.because}\n`;
  const parts = [`${found ?? ''}${policies}\n`];
  for (const [list, title] of TITLES) {
    const findings = report[list];
    if (findings.length === 0 && list !== 'decide') continue;
    parts.push(findings.length === 0 ? NO_DECISIONS : `${title}\n${findings.map(line).join('')}`);
  }
  const variables = Object.entries(keep);
  if (variables.length > 0) {
    const title =
      written?.isAdded !== true
        ? 'Variables to set to keep the defaults of envoyproxy/ratelimit'
        : 'Variables set in the written files to keep the defaults of envoyproxy/ratelimit';
    parts.push(`${title}\n${variables.map(([name, value]) => `  ${name}=${value}\n`).join('')}`);
  }
  if (written !== undefined) parts.push(writtenText(written.directory, written.files));
  return parts.join('\n');
}

function line({ about, text }: Finding): string {
  return `  ${about}: ${text}\n`;
}

/** Formats the report as one line of JSON. */
export function reportJson({
  service,
  directory,
  files,
  decide,
  advice,
  same,
  better,
  unused,
  keep,
  written,
}: Report): string {
  const paths = written?.files.map(({ path }) => join(written.directory, path));
  const where = { service: service ?? null, directory: directory ?? null, files };
  return `${JSON.stringify({ ...where, decide, advice, same, better, unused, keep, written: paths ?? null })}\n`;
}
