import type { LineValues } from '../log/log-format.js';
import type { LogValue } from './log-fields.js';

/** A wildcard domain without its asterisk. */
interface Wildcard<Host> {
  readonly text: string;
  readonly host: Host;
}

/**
 * Finds the virtual host of a request as Envoy does: an exact domain, then the longest `*.example.com`, then the
 * longest `example.*`, then `*` (envoy.config.route.v3.VirtualHost.domains).
 */
export class VirtualHosts<Host> {
  private readonly exact = new Map<string, Host>();
  private readonly suffixes: Wildcard<Host>[] = [];
  private readonly prefixes: Wildcard<Host>[] = [];
  private any: Host | undefined;
  private readonly authority: LogValue;
  private readonly ignoresPort: boolean;

  constructor(authority: LogValue, ignoresPort: boolean) {
    this.authority = authority;
    this.ignoresPort = ignoresPort;
  }

  add(domain: string, host: Host): void {
    const text = domain.toLowerCase();
    if (text === '*') this.any ??= host;
    else if (text.startsWith('*')) insert(this.suffixes, { text: text.slice(1), host });
    else if (text.endsWith('*')) insert(this.prefixes, { text: text.slice(0, -1), host });
    else if (!this.exact.has(text)) this.exact.set(text, host);
  }

  find(values: LineValues): Host | undefined {
    if (this.exact.size === 0 && this.suffixes.length === 0 && this.prefixes.length === 0) return this.any;
    const written = this.authority(values)?.toLowerCase();
    if (written === undefined) return this.any;
    const name = this.ignoresPort ? written.replace(/:\d*$/, '') : written;
    const isLonger = ({ text }: Wildcard<Host>) => name.length > text.length;
    return (
      this.exact.get(name) ??
      this.suffixes.find((one) => isLonger(one) && name.endsWith(one.text))?.host ??
      this.prefixes.find((one) => isLonger(one) && name.startsWith(one.text))?.host ??
      this.any
    );
  }
}

/** Inserts a wildcard, so that longer ones come first. */
function insert<Host>(list: Wildcard<Host>[], wildcard: Wildcard<Host>): void {
  const at = list.findIndex(({ text }) => text.length < wildcard.text.length);
  list.splice(at < 0 ? list.length : at, 0, wildcard);
}
