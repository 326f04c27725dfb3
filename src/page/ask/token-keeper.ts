const NAME = 'weir-token';

/*
 * A token lives in the memory of the page. Only where somebody ticks the box it is also kept for this tab, so that a
 * reload does not ask for it again; the browser forgets it with the tab.
 */

/** Whether a text can be sent as a token (RFC 6750, 2.1): a browser sends no header with other characters. */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** The token that was kept for this tab, if any. */
export function keptToken(): string | undefined {
  try {
    const kept = sessionStorage.getItem(NAME);
    return kept !== null && isToken(kept) ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps a token for this tab; undefined: forgets the one that is kept. */
export function keepToken(token: string | undefined): void {
  try {
    if (token === undefined) sessionStorage.removeItem(NAME);
    else sessionStorage.setItem(NAME, token);
  } catch {
    // A browser that stores nothing asks again.
  }
}
