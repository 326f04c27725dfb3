import { DEBUG_OPTIONS_HELP } from '../call/debug-options.js';

/** `weir bucket --help`. */
export const BUCKET_HELP = `Usage: weir bucket show|reset|grant|block|unblock|allow|disallow|blocks [<domain>] key=value… [options]
       weir bucket new-token <name> read|write

Shows what a running server has in the buckets of a descriptor, and helps or stops one caller now. The entries are those
of a descriptor as Envoy sends it, or as derive makes it; or some of them, which stand for every descriptor that has
them all. The domain may be left out where the policy has only one. Values of API keys are never shown.

  show       all limits that the descriptor meets: what is left, debt, the times until the next token and until full
             (or until the window ends), whether the limit is enforced, blocks and exemptions, the Redis key. With
             some entries only: the limits that could apply
  reset      fills the buckets up, and ends their debt
  grant      gives --tokens <n> back, up to full; with --over also past full, until they are used up
  block      denies whoever has these entries, for --for <duration>, whatever the policy says
  allow      exempts whoever has these entries from all limits, for --for <duration>; a block beats it
  unblock    ends a block, named by its entries or by --id
  disallow   ends an exemption, likewise
  blocks     lists blocks and exemptions in force
  new-token  makes a token that may read, or also write, and its line for ADMIN_TOKENS_FILE; asks no server

  --domain <name>        the domain, where it is not the first argument
  --entries <file>       entries before those, a line key=value each; - is standard input. All users of a machine see
                         arguments, so let a file name API keys
  --limit <n>/<unit>     show: the bucket of a request that brings this limit itself, such as 100/minute
  --rule <path or name>  reset, grant: only the limits of this rule
  --tokens <n>           grant: how many
  --over                 grant: also past full
  --for <duration>       block, allow: how long, such as 10m or 1h30m
  --reason <text>        block, allow: why, for those who look at it later
  --id <id>              unblock, disallow: which one
  --dry-run              say what would be done, and to what, and change nothing
  --watch[=<duration>]   show, blocks: ask again every 2 s, or so often, until Ctrl-C or q; draws on the same place of a
                         terminal
  --json                 print the server's answer; one line each time with --watch
${DEBUG_OPTIONS_HELP}
Blocks and exemptions are in force on all replicas that share a Redis within a second, and outlive restarts; in memory
they concern one server, and end with it.

Exit code: 0 when the server answered and did it, 1 when it did not or no limit could apply, 2 for wrong arguments.

Example: weir bucket block tenant=acme --for 10m --reason 'retries without a pause'
`;
