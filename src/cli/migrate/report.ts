import type { Finding, Findings } from './findings.js';

/** Everything that `weir migrate` prints. */
export interface Report extends Findings {
  /** Where the policies lie; undefined when a management server has them. */
  readonly directory: string | undefined;
  readonly files: readonly string[];
  /** What to set so that what is unset means what it means in the reference. */
  readonly keep: Readonly<Record<string, string>>;
}

const TITLES = [
  ['same', 'Behaves the same'],
  ['better', 'Better here'],
  ['decide', 'Needs a decision'],
] as const;

/** The report for people. */
export function reportText(report: Report): string {
  const { directory, files, keep } = report;
  const parts = [
    directory === undefined
      ? 'Policies come from the management server that CONFIG_GRPC_XDS_SERVER_URL names; they are not looked at.\n'
      : `${files.length} ${files.length === 1 ? 'policy file' : 'policy files'} in ${directory}\n`,
  ];
  for (const [list, title] of TITLES) {
    const findings = report[list];
    parts.push(`${title}\n${findings.map(line).join('') || '  nothing\n'}`);
  }
  const variables = Object.entries(keep);
  if (variables.length > 0) {
    parts.push(`To keep what was\n${variables.map(([name, value]) => `  ${name}=${value}\n`).join('')}`);
  }
  return parts.join('\n');
}

function line({ about, text }: Finding): string {
  return `  ${about}: ${text}\n`;
}

/** The report for machines, as one JSON object. */
export function reportJson({ directory, files, same, better, decide, keep }: Report): string {
  return `${JSON.stringify({ directory: directory ?? null, files, same, better, decide, keep })}\n`;
}
