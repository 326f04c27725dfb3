/** Resolves after a time in which load or a fault continues. To wait for a condition, use `waitFor`. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
