/** One instruction of a Dockerfile (`RUN`, `COPY`, …) with its arguments, without comments and line continuations. */
export interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** A stage: the instructions from one FROM to the next. */
export interface Stage {
  readonly base: string;
  /** Name of the stage (`AS build`), or its number. */
  readonly name: string;
  readonly instructions: readonly Instruction[];
}

/**
 * Splits a Dockerfile into stages. It supports only what weir's Dockerfiles use: no here-documents, no ARG, no
 * multi-stage base.
 */
export function parseDockerfile(text: string): Stage[] {
  const joined = text
    .split('\n')
    .filter((line) => !/^\s*(#|$)/.test(line))
    .join('\n')
    .replaceAll(/\\\n\s*/g, '');
  const stages: { base: string; name: string; instructions: Instruction[] }[] = [];
  for (const line of joined.split('\n')) {
    const [, name = '', rest = ''] = /^(\S+)\s+(.*)$/.exec(line) ?? [];
    if (name === 'FROM') {
      const [base = '', , alias] = rest.split(/\s+/);
      stages.push({ base, name: alias ?? String(stages.length), instructions: [] });
      continue;
    }
    const stage = stages.at(-1);
    if (stage === undefined) throw new Error(`before the first FROM: ${line}`);
    stage.instructions.push({ name, rest });
  }
  return stages;
}

/** Returns the variables that ENV instructions set: `ENV a=b c=d`. */
export function environmentOf({ instructions }: Stage): Record<string, string> {
  const pairs = instructions
    .filter(({ name }) => name === 'ENV')
    .flatMap(({ rest }) => rest.split(/\s+/))
    .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)] as const);
  return Object.fromEntries(pairs);
}

/** Returns the labels that LABEL instructions set: `LABEL a="b c" d=e`. */
export function labelsOf({ instructions }: Stage): Record<string, string> {
  const pairs = instructions
    .filter(({ name }) => name === 'LABEL')
    .flatMap(({ rest }) => [...rest.matchAll(/(\S+?)=(?:"([^"]*)"|(\S*))/g)])
    .map(([, key = '', quoted, plain = '']) => [key, quoted ?? plain] as const);
  return Object.fromEntries(pairs);
}

/** Returns the command of an instruction in exec form: `CMD ["node", "x.js"]`, `HEALTHCHECK --interval=1s CMD […]`. */
export function commandOf({ instructions }: Stage, name: 'ENTRYPOINT' | 'CMD' | 'HEALTHCHECK'): string[] {
  const found = instructions.find((instruction) => instruction.name === name);
  const json = found === undefined ? undefined : /\[.*\]$/.exec(found.rest)?.[0];
  if (json === undefined) throw new Error(`no ${name} in exec form`);
  return JSON.parse(json) as string[];
}
