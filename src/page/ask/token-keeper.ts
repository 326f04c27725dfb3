const NAME = 'weir-token';

/*
 * The page keeps the token in memory. If the user ticks the box, the token is also kept in the session storage of the
 * tab, so that it survives a reload. The browser deletes it with the tab.
 */

/** Returns whether a string can be sent as a token (RFC 6750, 2.1). Browsers reject headers with other characters. */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** Returns the token that is kept for this tab, if any. */
export function storedToken(): string | undefined {
  try {
    const kept = sessionStorage.getItem(NAME);
    return kept !== null && isToken(kept) ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps a token for this tab. If `token` is undefined, deletes the kept token. */
export function storeToken(token: string | undefined): void {
  try {
    if (token === undefined) sessionStorage.removeItem(NAME);
    else sessionStorage.setItem(NAME, token);
  } catch {
    // If the browser has no session storage, the page asks for the token again.
  }
}
