/** Handles errors that need no handling. */
export function ignore(): void {}
