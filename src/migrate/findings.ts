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
  readonly decide: Finding[];
  /** Notes that the switch does not depend on. */
  readonly advice: Finding[];
  readonly same: Finding[];
  readonly better: Finding[];
  /** Settings that have no effect in weir. */
  readonly unused: Finding[];
}

export const NO_FINDINGS: Findings = { decide: [], advice: [], same: [], better: [], unused: [] };

/** Merges findings with the same text into one that names all subjects, in the order of the first ones. */
export function mergeFindings(findings: readonly Finding[]): Finding[] {
  const names = new Map<string, string[]>();
  for (const { about, text } of findings) {
    const list = names.get(text);
    if (list === undefined) names.set(text, [about]);
    else list.push(about);
  }
  return [...names].map(([text, list]) => ({ about: list.join(', '), text }));
}
