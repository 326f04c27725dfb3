/**
 * Matches URLs in a text. Quotes and angle brackets end a URL in messages. A URL that was read as a path has only one
 * slash, and gRPC puts `dns:` in front of an address. The lookbehind keeps the time linear: texts may be long.
 */
const URLS = /(?<![a-z0-9+.-])(?:dns:|[a-z0-9+.-]{2,}:\/)[^\s"'<>]*/gi;
/** Matches the part before the host. */
const SCHEME = /^(?:dns:)?(?:[a-z0-9+.-]+:\/+)?/i;
/** Matches `host`, `host:port` and `[::1]:port`. */
const HOST_AND_PORT = /^(?:[^:@[\]]*|\[[^\]]*\])(?::\d*)?$/;

/**
 * Returns a text for logs and messages in which all URLs end before their query or fragment, and have no user and no
 * password. Each of these may be a secret, such as the signature of a pre-signed URL. Every place that shows an address
 * from a setting, an option or a file calls this function.
 */
export function withoutAddressSecrets(text: string): string {
  return text.replaceAll(URLS, shownUrl);
}

/** Does {@link withoutAddressSecrets} for a text that is an address, with or without a scheme. */
export function shownAddress(address: string): string {
  return /:\/|^dns:/.test(address) ? withoutAddressSecrets(address) : shownRest(address);
}

/**
 * Returns the first characters of a text from a file, for a message. A cut could remove the "@" that ends a login, so
 * the login is removed before.
 */
export function safePrefix(text: string, most = 60): string {
  return withoutAddressSecrets(text).slice(0, most);
}

function shownUrl(url: string): string {
  const [start = ''] = SCHEME.exec(url) ?? [];
  return start + shownRest(url.slice(start.length));
}

/** Returns the part after the scheme. A password may contain any character, also those that end a host. */
function shownRest(rest: string): string {
  const [path = ''] = rest.split(/[?#]/);
  const [authority = ''] = path.split('/');
  const isPlain = HOST_AND_PORT.test(authority) && !path.includes('@');
  const end = isPlain ? -1 : (path.includes('@') ? path : rest).lastIndexOf('@');
  return rest.slice(end + 1).replace(/[?#].*$/s, '');
}
