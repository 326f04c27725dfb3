import { join } from 'node:path';
import { type WrittenFile, writtenText } from '../written-files.js';
import type { Finding, Findings } from './findings.js';

/** Everything that `weir migrate` prints. */
export interface Report extends Findings {
  /** What runs the service, and why it is held for that; undefined where no file says what runs. */
  readonly service: { readonly title: string; readonly file: string; readonly because: string } | undefined;
  /** Where the policies are, for people. */
  readonly policies: string;
  /** The directory of the policies; undefined where they are elsewhere. */
  readonly directory: string | undefined;
  readonly files: readonly string[];
  /** What to set so that what is unset means what it means in the reference. */
  readonly keep: Readonly<Record<string, string>>;
  /** What `--write` wrote, undefined where nothing was. */
  readonly written: WrittenReport | undefined;
}

interface WrittenReport {
  readonly directory: string;
  readonly files: readonly WrittenFile[];
  /** Whether {@link Report.keep} is in one of the files. */
  readonly isAdded: boolean;
}

/** What is to be done comes first. */
const TITLES = [
  ['decide', 'Needs a decision'],
  ['advice', 'Good to know'],
  ['same', 'Behaves the same'],
  ['better', 'Better in weir'],
  ['unused', 'Changes nothing in weir'],
] as const;

/** The report for people. */
export function reportText(report: Report): string {
  const { service, policies, keep, written } = report;
  const found = service && `Picked: ${service.title} in ${service.file}, as ${service.because}\n`;
  const parts = [`${found ?? ''}${policies}\n`];
  for (const [list, title] of TITLES) {
    const findings = report[list];
    if (findings.length === 0 && list !== 'decide') continue;
    parts.push(`${title}\n${findings.map(line).join('') || '  nothing\n'}`);
  }
  const variables = Object.entries(keep);
  if (variables.length > 0) {
    const title =
      written?.isAdded !== true
        ? 'To be set, so that what is unset keeps its meaning'
        : 'Set in what was written, so that what is unset keeps its meaning';
    parts.push(`${title}\n${variables.map(([name, value]) => `  ${name}=${value}\n`).join('')}`);
  }
  if (written !== undefined) parts.push(writtenText(written.directory, written.files));
  return parts.join('\n');
}

function line({ about, text }: Finding): string {
  return `  ${about}: ${text}\n`;
}

/** The report for machines, as one JSON object. */
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
