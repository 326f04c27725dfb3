/**
 * Returns the choice that an environment variable selects for this run; undefined if it is not set. Throws for any
 * other value.
 */
export function environmentChoice<T extends string>(variable: string, choices: readonly T[]): T | undefined {
  const name = process.env[variable] || undefined;
  const choice = choices.find((one) => one === name);
  if (choice === undefined && name !== undefined)
    throw new Error(`${variable} is ${name}, not one of ${choices}`);
  return choice;
}
