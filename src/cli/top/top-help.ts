import { DEBUG_OPTIONS_HELP } from '../call/debug-options.js';

/** `weir top --help`. */
export const TOP_HELP = `Usage: weir top [options]

Shows who is denied most, and who uses most, in the last minute or hour: rule, entries, requests denied, hits used, and
how much of the limit was used when it was last seen. On a terminal the table is drawn anew every two seconds until q
or Ctrl-C; else it is printed once. Values of API keys are never shown.

The server keeps so many buckets as TOP_BUCKETS says, so numbers are estimates; the second line says how far they may
be too high.

  --all <addresses>      ask all replicas and add up: their debug ports with commas between them, or dns:<name>:<port>
                         for all addresses of a name, such as a headless Service of Kubernetes: those of
                         IPv4, or of IPv6 where there are none
  --by denied|used       what to sort by (default denied)
  --of minute|hour       the last minute, or the last hour (default minute)
  --domain <name>        only this domain
  --rule <path>          only this rule
  --limit <n>            at most so many rows, up to 1000 (default 20; on a terminal 200)
  --every <duration>     how often to ask (default 2s)
  --once                 print the table once, also on a terminal
  --json                 print the server's answer once; with --all that of all, and who did not answer
${DEBUG_OPTIONS_HELP}
Keys: s sorts by the other number, m and h choose minute and hour, / shows only rows with a text, arrows, PgUp, PgDn,
Home and End scroll, p pauses, r asks at once, ? lists all of them, q quits.

Exit code: 0 when every server answered, 1 when one did not or does not know the domain or rule, 2 for wrong arguments.

Example: weir top --all dns:weir-headless:6070 --of hour
`;
