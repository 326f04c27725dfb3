/** Nothing is to be done about it. */
export function ignore(): void {}
