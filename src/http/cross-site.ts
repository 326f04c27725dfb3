import type { HttpEndpoint, HttpHead } from './http.js';
import { text } from './http.js';

/*
 * What a page of another site may make the browser of somebody on this machine, or in this network, call. Programs send
 * neither Origin nor Sec-Fetch-Site, so nothing here concerns them.
 */

/** A host that only this machine reaches, as URLs write it, the last one for ::ffff:127.0.0.1 and the like. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|\[::ffff:7f[\da-f]{2}:[\da-f]{1,4}\])$/;
/** Such a host in a Host header. */
const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
/** What a browser says of requests that no other site made (Fetch Metadata). */
const OWN_SITES: readonly unknown[] = [undefined, 'none', 'same-origin'];
/** Most characters of a header that are quoted. */
const MAX_SHOWN = 100;

type Headers = HttpHead['headers'];

/**
 * Whether only this machine reaches a port on the address that HOST, DEBUG_HOST or PROMETHEUS_ADDR names, however it is
 * written: 127.1 and 0:0:0:0:0:0:0:1 lead to the same ports as 127.0.0.1 and ::1.
 */
export function isLoopbackHost(host: string): boolean {
  const address = `http://${host.includes(':') ? `[${host}]` : host}/`;
  return URL.canParse(address) && LOOPBACK.test(new URL(address).hostname);
}

/**
 * Why a page of another site may have made the call, a sentence; undefined where nothing says so. `schemes` are those
 * by which browsers reach the port.
 */
export function crossSiteReason(headers: Headers, schemes: readonly string[]): string | undefined {
  const { origin, host = '' } = headers;
  if (origin !== undefined && !schemes.some((scheme) => origin === `${scheme}://${host}`))
    return `pages of other origins may not call this port (Origin ${shown(origin)})`;
  if (OWN_SITES.includes(headers['sec-fetch-site'])) return undefined;
  return 'pages of other sites may not call this port (Sec-Fetch-Site)';
}

/** Whether a browser sent the call for a page, as its headers say. */
export function isBrowserRequest(headers: Headers): boolean {
  return headers.origin !== undefined || headers['sec-fetch-site'] !== undefined;
}

/**
 * Why a call to a port on loopback may come from a page of another site whose name leads here (DNS rebinding), a
 * sentence without its end; undefined where the Host header names this machine.
 */
export function dnsRebindingReason({ host = '' }: Headers): string | undefined {
  if (LOOPBACK_HOST.test(host)) return undefined;
  return (
    `the Host header is ${shown(host)}, which may be the name of another site that leads here: call ` +
    'localhost, 127.0.0.1 or [::1]'
  );
}

/**
 * The endpoints of a port on `host`, of which views show nothing to pages of another site: on loopback they answer 421
 * where the Host header names another machine. A call without that header comes from a program.
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
