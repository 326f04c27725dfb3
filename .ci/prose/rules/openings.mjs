import { atStart, inStatement, match } from '../find.mjs';

export const OPENINGS = [
  {
    name: 'opening-of',
    find: match(/^\W*Of (?!course\b|note\b|particular\b|these\b|those\b)\S+(?: \S+)?/),
    written: 'Of a running server `weir top` shows who is denied most.',
    better: 'On a running server, `weir top` shows which callers are denied most often.',
    passes: 'Of course, a limit can also be unset.',
  },
  {
    name: 'opening-what',
    find: inStatement(/^\W*What \S+(?: \S+)?/),
    written: 'What of a node stands on its level already.',
    better: 'The value that a sibling already matches.',
    passes: 'What happens when Redis is down?',
  },
  {
    name: 'opening-who',
    find: inStatement(/^\W*(?:Whose|Whom|Who|Whoever) \S+(?: \S+)?/),
    written: 'Whose buckets these are.',
    better: 'Show the affected callers.',
    passes: 'Callers whose buckets are empty wait.',
  },
  {
    name: 'opening-to',
    find: inStatement(
      /^\W*To (?:an?|the|one|those|each|all|others|it|them|people|callers|whoever|what|who)\b(?! end\b)(?: \S+)?/,
    ),
    written: 'To one after the other: decisions are not to wait for many browsers.',
    better: 'Sends the event to one browser at a time, so that decisions do not wait for many browsers.',
    passes: 'To set a limit, add `rate_limit` to the rule.',
  },
  {
    name: 'opening-where',
    find: inStatement(
      /^\W*Where (?!(?:possible|necessary|applicable|appropriate|available|supported|needed)\b|(?:`\w+`|[A-Z]) )\S+(?: \S+)?/,
    ),
    written: 'Where a file lies, or would, links followed.',
    better: 'Returns the path of a file with symbolic links resolved, whether or not the file exists.',
    passes: 'Where possible, set the limit in the policy.',
  },
  {
    name: 'opening-how',
    find: inStatement(
      /^\W*How (?!to\b|(?:long|many|much|often|far) (?:to|until|before|between)\b)\S+(?: \S+)?/,
    ),
    written: 'How much of a pause chance may add or take.',
    better: 'Random jitter, as a fraction of the pause.',
    passes: 'How long to wait before the next attempt.',
  },
  {
    name: 'opening-that',
    find: inStatement(
      /^\W*(?:(?:That|Those|These) (?:of|on|in|at|to|for|from|by|who|which|that|with)|None (?:where|without|in|at))\b/,
    ),
    written: 'Those of the whole domain, now.',
    better: 'Version of the whole domain that is loaded now.',
    passes: 'The limit applies to that domain.',
  },
  {
    name: 'opening-so',
    find: inStatement(/^\W*(?:So|As) (?:many|much|long|few|often)\b(?! as)(?: \S+)?/),
    written: 'So many keys of a file that may be no policy are held against those of one.',
    better: 'Maximum number of keys compared to recognise a policy file.',
    passes: 'So the caller waits for the next token.',
  },
  {
    name: 'opening-most',
    find: atStart(
      /^Most (?:(?!\b(?:are|is|have|has|do|will|can|should|use|need|of the|of these|of them)\b).)*$/,
    ),
    written: 'Most readers of events at once.',
    better: 'Maximum number of concurrent event streams.',
    passes: 'Most clients use one connection.',
  },
  {
    name: 'opening-longest',
    find: inStatement(
      /^(?:Longest|Shortest|Least|Fewest|Largest|Highest|Latest) (?:that|from|an?|the)\b(?: \S+)?/,
    ),
    written: 'Longest that an answer may come after its deadline.',
    better: 'Maximum delay of an answer after its deadline.',
    passes: 'Longest wait for an answer, in milliseconds.',
  },
  {
    name: 'opening-not',
    find: inStatement(
      /^\W*Not (?:with|those|these|that|in|by|for|before|after|where|what|of|to|the)\b(?: \S+)?/,
    ),
    written: 'Not with `recursive`, which tries for ever where there can be no directory.',
    better: 'Without `recursive`, because it never returns for a directory in /proc.',
    passes: 'Not all rules deny requests.',
  },
  {
    name: 'opening-pronoun',
    find: atStart(/^(?:It|They|Its|Their|Them|Those|That)\b(?: \S+)?(?: \S+)?/),
    written: 'Its address, without a login.',
    better: 'Address of the Redis server, without credentials.',
    passes: 'Address of the server, without its login.',
  },
  {
    name: 'opening-participle',
    find: atStart(/^(?:Told|Asked|Said|Owed|Known|Taken|Made|Given)\b(?: \S+)?/),
    written: 'Told once per change of state.',
    better: 'Called once for each state change.',
    passes: 'Called once for each state change.',
  },
];
