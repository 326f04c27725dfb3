// Patterns of prose that reads as translated. In each rule, `written` is a sentence that the rule flags, and `better`
// is the same sentence in plain English, which each finding shows. `passes` is a similar text without a finding. The
// test test/unit/docs/prose.test.ts checks all three.
import { wordsOf } from './sentences.mjs';

/**
 * Maximum number of words in a sentence. The guide is 25, but a list of technical terms can make a good sentence
 * longer.
 */
const MAX_WORDS = { doc: 30, comment: 35, message: 30 };

const isQuestion = (text) => text.includes('?');
/** A pattern that is written on several lines, without regard to case. */
const phrase = (strings) => new RegExp(strings.raw[0].replace(/\n\s*/g, ''), 'i');
/** Finds a pattern in the text of a sentence; null if it is not there. */
const match = (pattern) => (sentence) =>
  pattern.exec(sentence.text)?.[0].replace(/^\W+|[,.;:]+$/g, '') ?? null;
/** The same for sentences that are neither questions nor headings, whose usual form is a fragment. */
const inStatement = (pattern) => (sentence) =>
  isQuestion(sentence.text) || sentence.part !== 'text' ? null : match(pattern)(sentence);
/** The same for the first sentence of a comment. */
const atStart = (pattern) => (sentence) =>
  sentence.kind === 'comment' && sentence.first && !isQuestion(sentence.text)
    ? match(pattern)(sentence)
    : null;

/** Each rule is {name, find, written, better, passes}; `find` returns the words found in a sentence, or null. */
export const RULES = [
  // Openings
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
      phrase`
        ^\W*To (?:(?:a|an|the|one|those|each|all|others|it|them|people|callers|whoever|what|
        who)\b(?! end\b))(?: \S+)?
      `,
    ),
    written: 'To one after the other: decisions are not to wait for many browsers.',
    better: 'Sends the event to one browser at a time, so that decisions do not wait for many browsers.',
    passes: 'To set a limit, add `rate_limit` to the rule.',
  },
  {
    name: 'opening-where',
    find: inStatement(
      phrase`
        ^\W*Where (?!possible\b|necessary\b|applicable\b|appropriate\b|available\b|supported\b|
        needed\b)\S+(?: \S+)?
      `,
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
      /^\W*(?:That|Those|These|None|One|Ones) (?:of|who|which|that|with|on|in|at|to|for|from|by)\b/,
    ),
    written: 'That of the whole domain, now.',
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
  // Weak verbs
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
    find: (sentence) =>
      isQuestion(sentence.text)
        ? null
        : match(
            phrase`
              \b(?:what|that|which|who|all|whatever|one|it|they|files?) (?:is|are|was|were) there\b|
              \bthere (?:is|are|was|were) none\b
            `,
          )(sentence),
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
        \b(?:known|said|told|tells?|says?|counted|denied|held|shown|expected|wanted|answered|
        remembered|looked at|told) of\b
      `,
    ),
    written: 'What is known of a call before its first request.',
    better: 'State of a call before its first request.',
    passes: 'The number of denied requests.',
  },
  {
    name: 'passive-speech',
    find: match(/\b(?:is|are|was|were|be|being|been) (?:told|said|answered|looked|spoken)\b/i),
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
    find: match(/\blets? (?:\S+ ){0,4}pass\b/i),
    written: 'Every limit of the list lets the request pass.',
    better: 'Every limit of the list allows the request.',
    passes: 'Pass the policy as the first argument.',
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
    find: match(/\b(?:is|are|was|were) (?:not )?to be \S+(?:ed|en|wn|ld|de|nt)\b/i),
    written: 'A new login, which live connections are to be given.',
    better: 'The new login. Live connections must authenticate again with it.',
    passes: 'The policy has to be valid.',
  },
  // Negation
  {
    name: 'is-no',
    find: match(
      phrase`
        (?<!\bthere )(?<!\bthere (?:may|can|will|must|should|could) )\b(?:is|are|was|were|
        be) no (?!longer\b|more\b|less\b|fewer\b|different\b|better\b|worse\b|later\b|earlier\b|
        greater\b|larger\b|smaller\b|higher\b|lower\b|way\b|op\b)\S+
      `,
    ),
    written: "'minuet' is no unit.",
    better: "'minuet' is not a valid unit.",
    passes: 'There is no limit, and the key is no longer used.',
  },
  {
    name: 'nobody',
    find: match(/\b(?:nobody|anybody|somebody|whoever|whomever|whosoever)\b(?: \S+)?/i),
    written: 'A file that nobody can read.',
    better: 'A file that cannot be read.',
    passes: 'The user cannot read the file.',
  },
  {
    name: 'verb-nothing',
    find: match(
      phrase`
        \b(?:den(?:y|ies)|chang(?:e|es)|count(?:s|ed)?|takes?|keeps?|kept|answers?|says?|holds?|
        knows?|loads?|sends?|costs?|sets?|names?|gives?|matches|finds?|asks?|shows?|reads?|
        writes?|stores?|limits?|leaves?|tells?) nothing\b
      `,
    ),
    written: 'A setting that is set and changes nothing.',
    better: 'A setting that has no effect.',
    passes: 'The command does nothing in a dry run.',
  },
  {
    name: 'modal-no',
    find: match(
      phrase`
        \b(?:may|can|could|must|should|would|will) (?:hold|take|make|keep|name|give|show|know|
        find|reach|miss|answer|match|lead to) (?:no|nothing|none|nobody)\b
      `,
    ),
    written: 'A value may hold no wildcard.',
    better: 'A value must not contain a wildcard.',
    passes: 'The change will have no effect.',
  },
  // Order and pronouns
  {
    name: 'what-clause',
    find: match(
      phrase`
        (?:\b(?:of|by|from|on|with|beside|for|and|than|as|to) |, |: )what (?:is|was|are|were|
        has|had|lies|stands|comes|goes|takes|makes|keeps|differs|became|becomes|waits|waited|
        they|it|others|callers|that|those|one|each)\b(?: \S+)?
      `,
    ),
    written: 'Finds out by what is known of the proxy.',
    better: 'Detects the features of the proxy.',
    passes: 'The log shows what happened.',
  },
  {
    name: 'what-subject',
    find: match(
      phrase`
        \b(?:and|but|so|that|because|as|while|;|:) what (?:is|was|are|were|has|had|they|
        it) (?:\S+ ){1,6}(?:is|are|was|stays?|goes|comes|counts?)\b
      `,
    ),
    written: 'An update is invalid, and what was in force before stays.',
    better: 'The update is invalid; the previous version stays loaded.',
    passes: 'Check what the caller sent.',
  },
  {
    name: 'by-whom',
    find: match(/\b(?:\S+ )?whom\b/i),
    written: 'Shows by which rule and of whom.',
    better: 'Shows which rule denied the request, and for which caller.',
    passes: 'Callers who are denied wait.',
  },
  {
    name: 'of-which',
    find: match(/\b(?:of|by|beside|behind|under) which\b/i),
    written: 'A rule of which nothing was counted.',
    better: 'A rule without counts.',
    passes: 'The rule that denied the request.',
  },
  {
    name: 'more-in-it',
    find: match(
      phrase`
        \b(?:more|less|nothing|what is|what was|that is|that are|that were|something) (?:in|on|
        behind|beside|below|above) (?:it|them|these|those|there)\b
      `,
    ),
    written: 'In the format of envoyproxy/ratelimit with more in it.',
    better: 'In an extended form of the envoyproxy/ratelimit format.',
    passes: 'Open the file and add a rule to it.',
  },
  {
    name: 'whole-of',
    find: match(/\bthe whole of\b/i),
    written: '`npm run demo` shows the whole of it.',
    better: '`npm run demo` shows everything working together.',
    passes: 'The whole request is denied.',
  },
  {
    name: 'those-that',
    find: match(/\bthose (?:are|were|is) \S+ (?:that|which|who)\b/i),
    written: 'Those are listed that were known before.',
    better: 'Showing the last known list.',
    passes: 'Only those domains that are valid are loaded.',
  },
  {
    name: 'that-of',
    find: match(
      /\b(?:is|are|be|as|from|with|to|in|by|for|of|and|has|or|not|under|beside) (?:that|those) of\b/i,
    ),
    written: 'The name is that of the node on this side.',
    better: 'The name of the node in the first tree.',
    passes: 'The limit of the rule that matches.',
  },
  {
    name: 'the-one-before',
    find: match(/\bthe ones? (?:before|after|between|beside|behind|of)\b|\bsuch (?:a |an )?\S* ?ones?\b/i),
    written: 'The login that follows the one before.',
    better: 'The previous login stays in use.',
    passes: 'Use the second token instead.',
  },
  {
    name: 'as-they-do',
    find: match(
      phrase`
        \bas (?:these|those|others|it|they|this|that|calls|all|he) (?:does|do|did|is|are|was|
        were)\b(?! (?:not|in|on|for|now|a|an|the)\b)
      `,
    ),
    written: 'Takes a POST with a JSON body, as these do.',
    better: 'Accepts a POST request with a JSON body, like `/buckets`.',
    passes: 'The client waits, as it is not in a hurry.',
  },
  {
    name: 'and-so-is',
    find: match(/\b(?:and|but) (?:so|neither|nor) (?:is|are|do|does|did|was|were|has|have|can|must)\b/i),
    written: '`PORT` stays clear text, and so does `DEBUG_PORT`.',
    better: '`PORT` and `DEBUG_PORT` use clear text.',
    passes: 'The bucket is empty, and so the request is denied.',
  },
  {
    name: 'comma-no',
    find: match(/\b(?:is|are|was|were) (?:an? )?\S+(?: \S+)?, (?:and |but )?no \S+/i),
    written: 'Sentinel X is a store, and no Sentinel.',
    better: 'X is a Redis server, not a Sentinel.',
    passes: 'The bucket is empty, so no request is allowed.',
  },
  {
    name: 'of-its-own',
    find: match(
      /\b(?:\S+ )?of (?:its|their|his|one's|our|your|my|her|ours|theirs) own\b|\bof ours\b|\bone's own\b/i,
    ),
    written: 'Each worker has a deny cache of its own.',
    better: 'Each worker has its own deny cache.',
    passes: 'Each worker has its own deny cache.',
  },
  {
    name: 'however-many',
    find: match(
      phrase`
        \b(?:however (?:many|much|long|it|they|the|he|often|large|deep|few)|whatever (?:it|they|
        the|he|is|was|are|a|lines|came|comes)|whichever (?:it|they|is|was))\b
      `,
    ),
    written: 'However the process ends, the terminal is given back.',
    better: 'The terminal is restored when the process ends, unless SIGKILL ends it.',
    passes: 'However, the limit is not exact.',
  },
  {
    name: 'as-they-like',
    find: match(
      /\bas (?:\S+ )?as (?:they|he|it|you|one|she) (?:likes?|pleases?|wants?)\b|\bfor as long as\b/i,
    ),
    written: '0 for as long as they like.',
    better: '0: no limit.',
    passes: 'Keep the limit as long as the trial runs.',
  },
  {
    name: 'all-that',
    find: match(/\b(?:all (?:that|what)|anything that anybody)\b (?!matters\b)\S+/i),
    written: 'Of all that was counted, weir keeps the most used.',
    better: 'weir keeps the most used buckets.',
    passes: 'All requests that match are counted.',
  },
  {
    name: 'after-so-long',
    find: match(/\b(?:after|for|in|of|at|every|than|with|once in|one in) so (?:many|much|long|few)\b/i),
    written: 'A collector that has not taken a piece after so long is closed.',
    better: 'Time after which a slow collector connection is closed.',
    passes: 'The queue is so long that calls time out.',
  },
  {
    name: 'as-it-says',
    find: match(/\bas (?!it\b)(?:the |its )?\S+ (?:say|says|said|tell|tells|told)\b/i),
    written: 'The policies are loaded as the files say.',
    better: 'The loaded policies match the files.',
    passes: 'The error says which field is invalid.',
  },
  // Words
  {
    name: 'beside',
    find: match(/\bbeside\b(?: \S+)?|\bbesides(?=[.,;]?$)/i),
    written: 'Descriptors that have other entries beside these meet other limits.',
    better: 'More limits apply to descriptors with additional entries.',
    passes: 'Besides gRPC, weir serves HTTP.',
  },
  {
    name: 'elsewhere',
    find: match(/\b(?:from|lies|lie|goes|went|is|are|was|were|comes?) elsewhere\b/i),
    written: 'Variables that come from elsewhere.',
    better: 'Variables that weir does not read.',
    passes: 'Elsewhere in this manual, a limit is a rule.',
  },
  {
    name: 'at-hand',
    find: match(/\bat hand\b/i),
    written: 'The window at hand of a fixed window.',
    better: 'The current window.',
    passes: 'The request is handled at once.',
  },
  {
    name: 'doing-of',
    find: match(/\b(?:the|nobody's|no) doing of\b/i),
    written: 'Denials now may not be the doing of those who are denied.',
    better: 'Requests may be failing because of the store, not the caller.',
    passes: 'Doing this often is slow.',
  },
  {
    name: 'in-force',
    find: match(/\bin force\b/i),
    written: 'Its valid domains are in force.',
    better: 'The valid domains of the file are loaded.',
    passes: 'The valid domains were loaded.',
  },
  {
    name: 'good-bad',
    find: match(
      phrase`
        \b(?:good|bad) (?:domains?|polic(?:y|ies)|files?|versions?|values?|settings?|regular|
        ones?)\b|\b(?:is|are|was|were) (?:good|bad)\b(?= ?[,.;:]|$| and| now)
      `,
    ),
    written: 'Its good domains are loaded, and bad ones stay as they were.',
    better: 'Valid domains were loaded; invalid domains keep their previous version.',
    passes: 'Pinning the version is good practice.',
  },
  {
    name: 'archaic',
    find: match(
      /\b(?:seldom|anew|lately|in vain|thereof|whereof|for ever|for good|hitherto|alike|of late|by and by)\b/i,
    ),
    written: 'Callers connect anew.',
    better: 'Callers reconnect.',
    passes: 'Callers reconnect after 10 seconds.',
  },
  // Length
  {
    name: 'semicolons',
    find: ({ text }) => (/(?:;\s.*){2}/.test(text) ? text.slice(text.indexOf(';')) : null),
    written: 'The cache is full; a request waits; it is denied later.',
    better: 'The cache is full. The request waits and is denied later.',
    passes: 'The cache is full; the request waits.',
  },
  {
    name: 'long-sentence',
    find: ({ text, kind }) => {
      const words = wordsOf(text);
      return words > MAX_WORDS[kind] ? `${words} words` : null;
    },
    written: `${'A limit that many callers share, '.repeat(5)}is full and denies them all of their next requests.`,
    better:
      'A shared limit denies callers when its bucket is empty. The log reports the rule and the domain once a minute.',
    passes: 'A limit that many callers share drains quickly.',
  },
];
