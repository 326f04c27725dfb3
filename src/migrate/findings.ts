/** One thing that `weir migrate` has to say. */
export interface Finding {
  /** What it is about: a variable, a file and line, a domain, a rule. */
  readonly about: string;
  /** A sentence or two. Never holds a secret. */
  readonly text: string;
}

/** The lists of `weir migrate`. */
export interface Findings {
  /** What somebody has to do or to choose before the switch. */
  readonly decide: Finding[];
  /** What to know, or may be done; the switch does not depend on it. */
  readonly advice: Finding[];
  readonly same: Finding[];
  readonly better: Finding[];
  /** What is set and changes nothing in weir. */
  readonly unused: Finding[];
}

export const NO_FINDINGS: Findings = { decide: [], advice: [], same: [], better: [], unused: [] };

/** Joins names that share a text, so that what is said of many is said once. In the order in which the texts came. */
export function mergeFindings(findings: readonly Finding[]): Finding[] {
  const names = new Map<string, string[]>();
  for (const { about, text } of findings) {
    const list = names.get(text);
    if (list === undefined) names.set(text, [about]);
    else list.push(about);
  }
  return [...names].map(([text, list]) => ({ about: list.join(', '), text }));
}
