import { DEBUG_OPTIONS_HELP } from '../call/debug-options.js';

/** `weir top --help`. */
export const TOP_HELP = `Usage: weir top [options]

Shows the callers with the most denied requests or used hits in the last minute or hour: rule, entries, denied requests,
used hits, and the used share of the limit. API keys are never shown.

The server tracks a limited number of buckets (TOP_BUCKETS), so the numbers are estimates. The second line shows the
maximum error.

  --all <addresses>      add up all replicas: the <host:port> of each debug port, separated by commas, or
                         dns:<name>:<port> for all addresses of a host name, such as the name of a headless Kubernetes
                         Service. IPv6 addresses are used only if the name has no IPv4 address
  --by denied|used       sort order (default denied)
  --of minute|hour       period (default minute)
  --domain <name>        only this domain
  --rule <path>          only this rule
  --limit <n>            maximum number of rows, up to 1000 (default 20)
  --watch                print the table every two seconds until Ctrl-C
  --json                 print the answer as JSON; with --all, print the sum and list the servers that did not
                         answer; with --watch, print one line per answer
${DEBUG_OPTIONS_HELP}
Exit code: 0 if every server answered, 1 if a server did not answer or does not know the domain or rule, 2 for invalid
arguments.

Example: weir top --all dns:weir-headless:6070 --of hour
`;
