import { VARIABLES } from '../../server/settings/settings-table.js';
import { emptyVariables, readEnvFile } from '../env-file.js';
import type { Finding } from '../findings.js';
import { type Environment, NO_ENVIRONMENT } from './workload.js';

/** Collects the variables of a service from several sources. A later source overrides an earlier one. */
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

  /** Sets a variable; an undefined `value` means that the files do not contain it. */
  set(name: string, value: string | undefined): void {
    if (value === undefined) {
      delete this.variables[name];
      this.unknown.add(name);
    } else {
      this.variables[name] = value;
      this.unknown.delete(name);
    }
  }

  /** Adds the variables of an env file. Invalid lines become decisions. */
  addEnvFile(file: string, text: string): void {
    const { variables, unknown, problems } = readEnvFile(text);
    for (const [name, value] of Object.entries(variables)) this.set(name, value);
    for (const name of unknown) this.set(name, undefined);
    for (const { line, message } of problems)
      this.decide.push({ about: `${file}:${line}`, text: `${message}.` });
  }

  /** Marks all unset variables as unknown, because an unknown source may set them. */
  hideUnset(): void {
    for (const { name } of VARIABLES) if (this.variables[name] === undefined) this.unknown.add(name);
  }

  /** Marks all variables as unknown, because an unknown source may override them. */
  hideAll(): void {
    for (const name of Object.keys(this.variables)) delete this.variables[name];
    for (const { name } of VARIABLES) this.unknown.add(name);
  }
}
