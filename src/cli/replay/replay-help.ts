import { LOAD_OPTIONS_HELP } from '../load-options.js';

/** Options of `weir replay` for reading a log. */
export const LOG_OPTIONS_HELP = `  --envoy <file>   configuration of Envoy that makes descriptors of requests: a bootstrap, the output of /config_dump,
                   EnvoyFilter or BackendTrafficPolicy manifests with their routes, or a mapping. Repeat the option for
                   several files. Not needed for weir's decision log
  --log-format <format|file>
                   format of the lines, if it is not in --envoy and not a default: a format string of Envoy, or a file
                   with one or with json_format
  --window <duration>
                   how long a line may come after those of requests that started later (default 1m)
  --max-unreadable <share>
                   stop if more lines cannot be read (default 5%)
  --sampled <share>
                   the log contains only this share of the requests, such as 10%
`;

export const REPLAY_HELP = `Usage: weir replay --policy <new> [options] <access log>…

Decides the requests of an access log again with a new policy, and reports which callers the change would have
denied. Reads the JSON and text logs of Envoy, Istio and Envoy Gateway and weir's decision log, also compressed with
gzip or zstd. Several files are merged by time; - is standard input. The command contacts no server.

  --policy <path>  the new policy: a file or a directory
  --against <path> the policy to compare with. Default: the decisions in the log
  --as-active      decide as if all phases of the new policy were active, to see which callers a policy that is not
                   active yet would deny
${LOG_OPTIONS_HELP}  --init           print a mapping for the log, from its first lines, to be completed and passed to --envoy
  --by <key>       also report each value of this descriptor entry, such as tenant, or of the header that an entry comes
                   from, such as x-tenant
  --top <n>        number of values to show, with those first that lose most (default 20)
  --warm <duration>
                   do not count the first part of the log, which only fills buckets, such as 1h (default 0s)
  --slack <duration>
                   longest time between the start of a request and its decision (default 0s). Not needed if the log has
                   decided_at of weir's decision metadata
  --max-newly-denied <n|share|key=value:n>
                   fail if the change newly denies more requests: 0, 0.1%, tenant=acme:0, or tenant=*:0 for each tenant
                   on its own. Can be repeated
  --json <file>    write the report as JSON; - is standard output
  --html <file>    write the report as a web page
  --anonymise      replace values of requests by hashes. API keys are always redacted
${LOAD_OPTIONS_HELP}
Ctrl-C ends the replay, and prints what is known so far.

Exit code: 0 if no --max-newly-denied is exceeded, 3 if one is, 1 if the log cannot be read or does not decide it, 2 for
invalid arguments.
`;
