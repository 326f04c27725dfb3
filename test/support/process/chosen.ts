/** Which of `choices` the environment variable names for this run; undefined where it is not set. Throws for others. */
export function chosen<T extends string>(variable: string, choices: readonly T[]): T | undefined {
  const name = process.env[variable] || undefined;
  const choice = choices.find((one) => one === name);
  if (choice === undefined && name !== undefined)
    throw new Error(`${variable} is ${name}, not one of ${choices}`);
  return choice;
}
