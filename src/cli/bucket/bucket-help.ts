import { DEBUG_OPTIONS_HELP } from '../call/debug-options.js';

/** `weir bucket --help`. */
export const BUCKET_HELP = `Usage: weir bucket show|reset|grant|release [<domain>] key=value… [options]
       weir bucket new-token <name> read|write

Shows or changes the buckets of one caller on a running server. The arguments key=value are the entries of a
descriptor, before or after derive. A subset of the entries selects every descriptor that contains them. <domain> is
optional if the server has only one domain. API keys are never shown.

  show       show all limits that the descriptor matches: tokens or hits remaining, debt, time until the next token
             and until the bucket is full, the 100 holds that expire first, and the Redis key. For a subset of the
             entries, show the limits that could match
  reset      refill the buckets, clear their debt, and end their reservations
  grant      add --tokens <n> to each limit, up to the capacity. In a chain (then), each limit gets these tokens; with
             --rule, only one limit
  release    end one hold (--hold) or all holds (--all): free the slots of a concurrency limit, and give back all
             reserved tokens or hits, regardless of "unknown" in the policy. The requests may still run, but weir
             no longer counts them and ignores what they use
  new-token  print a new token and its line for ADMIN_TOKENS_FILE, without contacting a server

  --domain <name>        domain, if it is not the first argument
  --entries <file>       read entries from a file, one key=value per line; - reads standard input. Use a file for API
                         keys, because all users of a machine can see command-line arguments
  --limit <n>/<unit>     show: the bucket of requests with this override, such as 100/minute
  --rule <path or name>  reset, grant, release: only the limits of this rule
  --tokens <n>           grant: number of tokens
  --hold <id>            release: ID of the hold, as show lists it
  --all                  release: all holds
  --dry-run              show what would change, without changing it
  --watch[=<duration>]   show: repeat at this interval (default 2s) until Ctrl-C
  --json                 print the JSON answer of the server; with --watch, one line per answer
${DEBUG_OPTIONS_HELP}
To block a customer, or to exempt a customer from limits, set blocked or unlimited in the table of plans.

Exit code: 0 if the command succeeded, 1 if it failed or no limit could match, 2 for invalid arguments.

Example: weir bucket grant tenant=acme --tokens 100
`;
