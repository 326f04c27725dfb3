/** One statement in the report of `weir migrate`. */
export interface Finding {
  /** Subject: a variable, a file and line, a domain or a rule. */
  readonly about: string;
  /** One or two sentences that never contain a secret. */
  readonly text: string;
}

/** Lists of the report of `weir migrate`. */
export interface Findings {
  /** Decisions and changes that are necessary before the switch. */
  readonly decide: readonly Finding[];
  /** Notes that the switch does not depend on. */
  readonly advice: readonly Finding[];
  /** Settings that have no effect in weir. */
  readonly unused: readonly Finding[];
}

/** Report of `weir migrate`. */
export interface Report extends Findings {
  /** Workload that runs the service, and why it was chosen; undefined if no file contains a workload. */
  readonly service: { readonly title: string; readonly file: string; readonly because: string } | undefined;
  /** Sentence about the location of the policies. */
  readonly policies: string;
  readonly files: readonly string[];
  /** Variables to add so that unset variables keep the defaults of the reference. */
  readonly keep: Readonly<Record<string, string>>;
}

/** Titles of the lists, in the order of the report; necessary decisions are first. */
const TITLES = [
  ['decide', 'Needs a decision'],
  ['advice', 'Good to know'],
  ['unused', 'Has no effect in weir'],
] as const;

const NO_DECISIONS = 'No decisions are needed.\n';
const NEXT =
  'docs/migrate.md in the weir repository describes the switch, and lists all other differences.\n';

export function reportText(report: Report): string {
  const { service, policies, keep } = report;
  const found = service && `Selected ${service.title} in ${service.file}, because ${service.because}\n`;
  const parts = [`${found ?? ''}${policies}\n`];
  for (const [list, title] of TITLES) {
    const findings = report[list];
    if (findings.length > 0) parts.push(`${title}\n${findings.map(line).join('')}`);
    else if (list === 'decide') parts.push(NO_DECISIONS);
  }
  const variables = Object.entries(keep).map(([name, value]) => `  ${name}=${value}\n`);
  if (variables.length > 0)
    parts.push(`Variables to set to keep the defaults of envoyproxy/ratelimit\n${variables.join('')}`);
  return [...parts, NEXT].join('\n');
}

function line({ about, text }: Finding): string {
  return `  ${about}: ${text}\n`;
}

/** Formats the report as one line of JSON. */
export function reportJson({ service, files, decide, advice, unused, keep }: Report): string {
  return `${JSON.stringify({ service: service ?? null, files, decide, advice, unused, keep })}\n`;
}
