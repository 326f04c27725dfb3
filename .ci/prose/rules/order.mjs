import { match, phrase } from '../find.mjs';

export const ORDER = [
  {
    name: 'what-clause',
    find: match(
      phrase`
        (?:\b(?:of|by|from|on|with|beside|for|and|than|as|to|in|against|like|throws|all) |, |: )what (?:is|was|are|were|has|had|lies|stands|comes|
        goes|takes|makes|keeps|holds|needs|waits|waited|differs|became|becomes|they|it|others|
        that|those)\b(?: \S+)?
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
    find: match(/\b(?!to )(?:\S+ )whom\b|^whom\b/i),
    written: 'Shows by which rule and of whom.',
    better: 'Shows which rule denied the request, and for which caller.',
    passes: 'Callers who are denied wait.',
  },
  {
    name: 'of-which',
    find: match(
      phrase`
        (?:[,;] |\b(?:and|or|but) )(?:of|by|behind|under|from|on|beside) which\b|\b(?:of|
        beside|behind) which (?:less|more|nothing|none|some|no|only|it|they)\b
      `,
    ),
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
      /\b(?:be|from|with|to|in|by|for|of|and|has|or|not|under|beside) (?:that|those) of\b(?: \S+)?/i,
    ),
    written: 'Shares a bucket with that of the node on this side.',
    better: 'Shares the bucket of the node in the first tree.',
    passes: 'The limit of the rule that matches.',
  },
  {
    name: 'the-one-before',
    find: match(
      /\bthe ones? (?:before|after|between|beside|behind)\b|\bsuch (?:an? )?(?!as\b)(?:\S+ )?ones?\b/i,
    ),
    written: 'The login that follows the one before.',
    better: 'The previous login stays in use.',
    passes: 'Use the second token instead.',
  },
  {
    name: 'as-they-do',
    find: match(
      phrase`
        \bas (?:these|those|others|calls|all|that one) (?:does|do|did|is|are|was|were)\b|
        \bas (?:it|they) (?:is|are|was|were|does|do|did|had|has)(?=[.,;:)]|$)
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
      /\bhowever (?:many|much|few|it is|they are)\b|\bwhatever (?:it|they|is|was|are|a|lines|came|comes|else)\b/i,
    ),
    written: 'The terminal is given back, whatever comes.',
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
    passes: 'The error names the invalid field.',
  },
  {
    name: 'where-none',
    find: match(
      phrase`
        \b(?:undefined|null|none|nothing|absent|false|true|empty|left out|
        '') where\b(?: \S+)?|\bwhere (?:none|nothing|nobody|no|one) (?:is|are|
        was|were|has|have|does|do|did|can|could)\b
      `,
    ),
    written: 'Undefined where there is none.',
    better: 'Undefined if no rule matches.',
    passes: 'Undefined if the rule has no limit.',
  },
  {
    name: 'most-denied',
    find: match(
      phrase`
        \b(?:is|are|was|were) (?:denied|asked|used|counted|taken|let) (?:of|least of)\b|
        (?<!\bat )\bmost is (?:asked|denied|counted|used)\b
      `,
    ),
    written: 'The buckets that most is denied of.',
    better: 'The buckets with the most denied requests.',
    passes: 'The buckets with the most hits.',
  },
  {
    name: 'that-one',
    find: match(/\bthat one(?:'s\b|(?=[.,;:)]|$)| (?:is|are|has|was|does|relies|rely)\b)/i),
    written: 'Requires what users of that one rely on.',
    better: 'Checks the features that users of envoyproxy/ratelimit rely on.',
    passes: 'Use the second connection.',
  },
];
