import type { HttpEndpoint, HttpHead } from './http.js';
import { text } from './http.js';

/*
 * Protects against pages of other sites that make a browser on this machine, or in this network, send requests.
 * Programs other than browsers send neither Origin nor Sec-Fetch-Site, so these checks do not affect them.
 */

/** Hosts that only this machine can reach, as in URLs. The last one matches ::ffff:127.0.0.1 and similar addresses. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|\[::ffff:7f[\da-f]{2}:[\da-f]{1,4}\])$/;
/** The same hosts in a Host header. */
const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
/** Values of Sec-Fetch-Site for requests that did not come from another site (Fetch Metadata). */
const OWN_SITES: readonly unknown[] = [undefined, 'none', 'same-origin'];
/** Maximum number of characters of a header that are quoted. */
const MAX_SHOWN = 100;

type Headers = HttpHead['headers'];

/**
 * Returns whether only this machine can reach a port on the address of HOST, DEBUG_HOST or PROMETHEUS_ADDR, in any
 * notation: 127.1 and 0:0:0:0:0:0:0:1 are the same addresses as 127.0.0.1 and ::1.
 */
export function isLoopbackHost(host: string): boolean {
  const address = `http://${host.includes(':') ? `[${host}]` : host}/`;
  return URL.canParse(address) && LOOPBACK.test(new URL(address).hostname);
}

/**
 * Returns why a page of another site may have sent the request, as a sentence, or undefined if nothing indicates it.
 * `schemes` are the URL schemes of the port.
 */
export function crossSiteReason(headers: Headers, schemes: readonly string[]): string | undefined {
  const { origin, host = '' } = headers;
  if (origin !== undefined && !schemes.some((scheme) => origin === `${scheme}://${host}`))
    return `pages from other origins may not call this port (Origin ${shown(origin)})`;
  if (OWN_SITES.includes(headers['sec-fetch-site'])) return undefined;
  return 'pages from other sites may not call this port (Sec-Fetch-Site)';
}

/** Returns whether a browser sent the request for a page, according to its headers. */
export function isBrowserRequest(headers: Headers): boolean {
  return headers.origin !== undefined || headers['sec-fetch-site'] !== undefined;
}

/**
 * Returns why a request to a loopback port may come from a page of another site by DNS rebinding, as a sentence without
 * its end. Returns undefined if the Host header names this machine.
 */
export function dnsRebindingReason({ host = '' }: Headers): string | undefined {
  if (LOOPBACK_HOST.test(host)) return undefined;
  return (
    `the Host header is ${shown(host)}, which may be another site's host name that resolves to this ` +
    'address (DNS rebinding); use localhost, 127.0.0.1 or [::1] instead'
  );
}

/**
 * Wraps the endpoints of a port on `host` so that pages of other sites cannot read views. On loopback, views answer 421
 * if the Host header names another machine. Requests without that header come from programs.
 */
export function guardedViews(host: string, endpoints: readonly HttpEndpoint[]): readonly HttpEndpoint[] {
  if (!isLoopbackHost(host)) return endpoints;
  return endpoints.map((endpoint) => {
    if (endpoint.refuse !== undefined) return endpoint;
    return {
      ...endpoint,
      refuse(head) {
        const { host: named = '' } = head.headers;
        const fault =
          named === '' || endpoint.exposesData?.(head) === false
            ? undefined
            : dnsRebindingReason(head.headers);
        return fault === undefined ? undefined : text(421, `${fault}\n`);
      },
    };
  });
}

function shown(header: string): string {
  return JSON.stringify(header.slice(0, MAX_SHOWN));
}
