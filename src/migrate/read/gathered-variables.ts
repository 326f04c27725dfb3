import { VARIABLES } from '../../server/settings/settings-table.js';
import { emptyVariables, readEnvFile } from '../env-file.js';
import type { Finding } from '../findings.js';
import { type Environment, NO_ENVIRONMENT } from './workload.js';

/** The variables of a service while they are gathered from several places, of which the last that has one counts. */
export class GatheredVariables implements Environment {
  readonly variables: Record<string, string>;
  readonly unknown: Set<string>;
  readonly same: Finding[];
  readonly decide: Finding[];

  constructor({ variables, unknown, same, decide }: Environment = NO_ENVIRONMENT) {
    this.variables = emptyVariables(variables);
    this.unknown = new Set(unknown);
    this.same = [...same];
    this.decide = [...decide];
  }

  /** `value` undefined: it is set to what the files do not tell. */
  set(name: string, value: string | undefined): void {
    if (value === undefined) {
      delete this.variables[name];
      this.unknown.add(name);
    } else {
      this.variables[name] = value;
      this.unknown.delete(name);
    }
  }

  /** Adds the lines of an env file; lines that are wrong are to be decided. */
  addEnvFile(file: string, text: string): void {
    const { variables, unknown, problems } = readEnvFile(text);
    for (const [name, value] of Object.entries(variables)) this.set(name, value);
    for (const name of unknown) this.set(name, undefined);
    for (const { line, message } of problems)
      this.decide.push({ about: `${file}:${line}`, text: `${message}.` });
  }

  /** Something that is not seen may set any variable that nothing else sets. */
  hideUnset(): void {
    for (const { name } of VARIABLES) if (this.variables[name] === undefined) this.unknown.add(name);
  }

  /** The same of something that outranks all that was gathered before. */
  hideAll(): void {
    for (const name of Object.keys(this.variables)) delete this.variables[name];
    for (const { name } of VARIABLES) this.unknown.add(name);
  }
}
