import { match, outsideQuestions, phrase } from '../find.mjs';

/** In pages, "the log says why" is good English; in comments and messages, shorter words exist. */
const PAGE_SAYS = /\b(?:page|section|chapter|table) says\b/i;
const SAYS_WHAT = phrase`
  \b(?:says?|said) (?:what|how|why|where|who|when|which|whether|so)\b|
  \b(?:tells?|told) (?:what|who|where|when|so)\b
`;

export const VERBS = [
  {
    name: 'stands',
    find: match(/(?<!-)\b(?:stands?|stood)\b(?! for\b| out\b|-|alone)(?: \S+)?/i),
    written: 'Rules stand at customer.',
    better: 'Rules exist for: customer.',
    passes: 'RLS stands for rate limit service.',
  },
  {
    name: 'lies',
    find: match(/\b(?:lies|lie|lay) (?:on|in|at|beside|below|under|behind|there|elsewhere|between)\b/i),
    written: 'All buckets of a tenant lie on one slot.',
    better: 'All buckets of a tenant are stored in one slot.',
    passes: 'The value must be between 1 and 100.',
  },
  {
    name: 'is-there',
    find: outsideQuestions(
      phrase`
        \b(?:what|that|which|who|all|whatever|one|it|they|files?) (?:is|are|was|were) there\b|
        \bthere (?:is|are|was|were) none\b
      `,
    ),
    written: 'A sentence where there is none, and whatever is there.',
    better: 'Returns an error message if the file does not exist.',
    passes: 'Is there a limit for this caller?',
  },
  {
    name: 'makes-of',
    find: match(
      phrase`
        \b(?:(?:makes?|made|making) of (?:it|them|that|this|what|the|each)|(?:makes?|made|
        making) (?:\S+ ){0,3}out of|what \S+(?: \S+)? (?:makes?|made) of)\b
      `,
    ),
    written: 'Before rules are looked for, entries are made out of others.',
    better: 'Before matching, weir derives entries from other entries.',
    passes: 'The policy is made up of domains.',
  },
  {
    name: 'becomes-of',
    find: match(/\b(?:becomes?|became|become) of\b/i),
    written: 'What became of the descriptors of a rule.',
    better: 'Outcomes of the descriptors of a rule: allowed, denied or failed.',
    passes: 'A replica becomes the master.',
  },
  {
    name: 'known-of',
    find: match(
      phrase`
        \b(?:known|said|told|says?|counted|denied|held|shown|expected|wanted|answered|
        remembered|looked at|told) of\b
      `,
    ),
    written: 'What is known of a call before its first request.',
    better: 'State of a call before its first request.',
    passes: 'The number of denied requests.',
  },
  {
    name: 'passive-speech',
    find: match(
      phrase`
        \b(?:is|are|was|were|be|being|been) (?:told|said|asked|looked|spoken)\b|\basked (?:of|by)\b|
        \b(?:is|was) answered\b
      `,
    ),
    written: 'Who may ask is said in the access page.',
    better: 'The access page explains who may use the debug port.',
    passes: 'The server answers with status 400.',
  },
  {
    name: 'goes-by',
    find: match(/\b(?:goes|go|going|went|comes?|came|coming) (?:by|along|beside)\b/i),
    written: 'The time by the clock that the rate goes by.',
    better: 'Current time of the clock that the rate uses.',
    passes: 'The request goes to the upstream.',
  },
  {
    name: 'lets-pass',
    find: match(/\blets? (?:it |them |more |less )?pass\b/i),
    written: 'Every limit of the list let it pass.',
    better: 'Every limit of the list allows the request.',
    passes: 'The proxy lets the request pass.',
  },
  {
    name: 'can-be-had',
    find: match(/\b(?:can|could|cannot|may|to) (?:not )?be had\b/i),
    written: 'No new login could be had.',
    better: 'The command returned no new login.',
    passes: 'The login command had no output.',
  },
  {
    name: 'is-meant',
    find: match(/\b(?:is|are|was|were) (?:not )?meant\b(?! (?:to|for|as)\b)/i),
    written: 'Nodes of an exact value are not meant.',
    better: 'Nodes with an exact value are excluded.',
    passes: 'The flag is meant for tests.',
  },
  {
    name: 'concerns',
    find: match(/\b(?:it|that|this|which|change) concerns?\b/i),
    written: 'It concerns descriptors of 2 limits.',
    better: 'Affects 2 limits.',
    passes: 'Privacy concerns are explained below.',
  },
  {
    name: 'has-part',
    find: match(/\b(?:has|have|had) (?:no |a )?part in\b/i),
    written: 'Redis has no part in that.',
    better: 'Not a Redis failure: the caller’s deadline passed.',
    passes: 'Each worker takes part in the drain.',
  },
  {
    name: 'is-to-be',
    find: match(
      /\b(?:is|are|was|were) to be \S+(?:ed|en|wn|ld|de|nt|one)\b|\bwhat (?:is|are|was|were) to \S+/i,
    ),
    written: 'A new login, which live connections are to be given.',
    better: 'The new login. Live connections must authenticate again with it.',
    passes: 'The policy has to be valid.',
  },
  {
    name: 'says-what',
    find: (sentence) => match(sentence.kind === 'doc' ? PAGE_SAYS : SAYS_WHAT)(sentence),
    written: 'A line of the log that says why.',
    better: 'A log line with the reason.',
    passes: 'The log line shows the reason.',
  },
  {
    name: 'goes-on',
    find: match(/\b(?:goes|go|went|gone|going) on\b/i),
    written: 'A process that goes on after its deadline.',
    better: 'A process that continues after its deadline.',
    passes: 'The process continues after its deadline.',
  },
  {
    name: 'takes-long',
    find: match(/\b(?:takes?|took|taking) (?:so |too )?long\b(?! to\b| enough\b)/i),
    written: 'Work that takes long is done in slices.',
    better: 'weir divides long work into slices.',
    passes: 'The first start takes a minute longer.',
  },
  {
    name: 'hears-of',
    find: match(/\b(?:hears?|heard|learns?|learnt|learned|tells|told) (?:of|nothing)\b/i),
    written: 'A node that has not heard of the change.',
    better: 'A node that does not have the change yet.',
    passes: 'The node receives the change later.',
  },
];
