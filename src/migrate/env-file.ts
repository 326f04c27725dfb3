/** What an env file gave. */
export interface EnvFile {
  readonly variables: Readonly<Record<string, string>>;
  /** Names of variables that are set to what only their owner knows. */
  readonly unknown: ReadonlySet<string>;
  /** What is wrong: lines that are no variable, and those of {@link unknown}. */
  readonly problems: readonly EnvProblem[];
}

export interface EnvProblem {
  /** 1-based. */
  readonly line: number;
  readonly message: string;
}

/** No variables yet, without a prototype: `__proto__` and `constructor` are names like any other. */
export function emptyVariables(variables: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.assign(Object.create(null) as Record<string, string>, variables);
}

/**
 * Reads lines of `KEY=VALUE` as docker compose does
 * (docs.docker.com/compose/how-tos/environment-variables/variable-interpolation, "Env file syntax"): `#` begins a
 * comment, `export` may stand before, single quotes keep a value as it is, double quotes know `\n`, `\"` and the like,
 * without quotes ` #` ends the value. Values that name other variables are not known here.
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

/**
 * The same lines in the one form that `docker run --env-file` takes, too: `KEY=VALUE` without `export`, spaces and
 * quotes. Lines whose value is not known here, or has several lines, stay as they are.
 */
export function plainLines(text: string): string {
  return text.replace(/^\uFEFF/, '').replaceAll(/^[^\r\n]+/gm, (raw) => {
    const line = raw.trim();
    const read = line === '' || line.startsWith('#') ? '' : readLine(line);
    if (typeof read === 'string' || read.value === undefined || /[\r\n]/.test(read.value)) return raw;
    return `${read.name}=${read.value}`;
  });
}

type Line =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly value?: undefined; readonly problem: string };

/** The variable of a line; a sentence where there is none. */
function readLine(line: string): Line | string {
  const [, name, rest] = /^(?:export\s+)?([A-Za-z_][\w.-]*)\s*(?:=(.*))?$/.exec(line) ?? [];
  if (name === undefined) return 'it is not of the form KEY=VALUE';
  const unknown = (problem: string): Line => ({ name, problem });
  if (rest === undefined)
    return unknown(`${name} has no "=", so its value comes from elsewhere; write it here`);
  const value = readValue(rest.trim());
  if (value === undefined) return unknown(`the quotes of ${name} do not close on this line`);
  if (!value.namesOthers) return { name, value: value.text };
  return unknown(`the value of ${name} names another variable; write what it stands for`);
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

function readValue(text: string): { readonly text: string; readonly namesOthers: boolean } | undefined {
  if (text.startsWith("'")) {
    const [, inner] = /^'([^']*)'\s*(?:#.*)?$/.exec(text) ?? [];
    return inner === undefined ? undefined : { text: inner, namesOthers: false };
  }
  if (text.startsWith('"')) {
    const [, inner] = /^"((?:[^"\\]|\\.)*)"\s*(?:#.*)?$/.exec(text) ?? [];
    if (inner === undefined) return undefined;
    return {
      text: inner.replaceAll(/\\(.)/g, (_, character: string) => ESCAPES[character] ?? character),
      namesOthers: namesOthers(inner.replaceAll(/\\./g, '')),
    };
  }
  const plain = text.replace(/(^|\s)#.*$/, '').trimEnd();
  return { text: plain, namesOthers: namesOthers(plain) };
}

/** `$NAME` or `${NAME}`; `$$` is a dollar. */
function namesOthers(text: string): boolean {
  return /\$(?:\{|[A-Za-z_])/.test(text.replaceAll('$$', ''));
}
