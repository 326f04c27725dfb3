export interface EnvFile {
  readonly variables: Readonly<Record<string, string>>;
  /** Names of variables whose values the file does not contain. */
  readonly unknown: ReadonlySet<string>;
  /** Lines that set no variable, and lines of variables in {@link unknown}. */
  readonly problems: readonly EnvProblem[];
}

export interface EnvProblem {
  /** Number of the line; the first is 1. */
  readonly line: number;
  readonly message: string;
}

/** Copies variables into an object without a prototype, so that `__proto__` and `constructor` are ordinary names. */
export function emptyVariables(variables: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.assign(Object.create(null) as Record<string, string>, variables);
}

/**
 * Parses lines of `KEY=VALUE` like docker compose
 * (docs.docker.com/compose/how-tos/environment-variables/variable-interpolation, "Env file syntax"). `#` begins a
 * comment, and `export` may precede a name. Single-quoted values are literal, double-quoted values have escapes such as
 * `\n` and `\"`, and ` #` ends an unquoted value. A value that refers to other variables is unknown.
 */
export function readEnvFile(text: string): EnvFile {
  const variables = emptyVariables();
  const unknown = new Set<string>();
  const problems: EnvProblem[] = [];
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  for (const [i, raw] of lines.entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const read = readLine(line);
    if (typeof read !== 'string' && read.value !== undefined) {
      variables[read.name] = read.value;
      unknown.delete(read.name);
      continue;
    }
    problems.push({ line: i + 1, message: typeof read === 'string' ? read : read.problem });
    if (typeof read === 'string') continue;
    unknown.add(read.name);
    delete variables[read.name];
  }
  return { variables, unknown, problems };
}

type Line =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly value?: undefined; readonly problem: string };

/** Parses one line. Returns an error message if it sets no variable. */
function readLine(line: string): Line | string {
  const [, name, rest] = /^(?:export\s+)?([A-Za-z_][\w.-]*)\s*(?:=(.*))?$/.exec(line) ?? [];
  if (name === undefined) return 'the line is not of the form KEY=VALUE';
  const unknown = (problem: string): Line => ({ name, problem });
  if (rest === undefined)
    return unknown(`${name} has no "=", so this file does not contain its value; add "=" and the value`);
  const value = readValue(rest.trim());
  if (value === undefined)
    return unknown(`the quoted value of ${name} does not end on this line; write the value on one line`);
  if (!value.refersToVariables) return { name, value: value.text };
  return unknown(`the value of ${name} refers to another variable; replace the reference with its value`);
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

function readValue(text: string): { readonly text: string; readonly refersToVariables: boolean } | undefined {
  if (text.startsWith("'")) {
    const [, inner] = /^'([^']*)'\s*(?:#.*)?$/.exec(text) ?? [];
    return inner === undefined ? undefined : { text: inner, refersToVariables: false };
  }
  if (text.startsWith('"')) {
    const [, inner] = /^"((?:[^"\\]|\\.)*)"\s*(?:#.*)?$/.exec(text) ?? [];
    if (inner === undefined) return undefined;
    return {
      text: inner.replaceAll(/\\(.)/g, (_, character: string) => ESCAPES[character] ?? character),
      refersToVariables: refersToVariables(inner.replaceAll(/\\./g, '')),
    };
  }
  const plain = text.replace(/(^|\s)#.*$/, '').trimEnd();
  return { text: plain, refersToVariables: refersToVariables(plain) };
}

/** Returns whether a string contains `$NAME` or `${NAME}`; `$$` is an escaped dollar sign. */
function refersToVariables(text: string): boolean {
  return /\$(?:\{|[A-Za-z_])/.test(text.replaceAll('$$', ''));
}
