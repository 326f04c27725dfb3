import { match, phrase } from '../find.mjs';

export const WORDS = [
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
    written: 'The valid domains are in force.',
    better: 'The valid domains are in effect.',
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
      phrase`
        \b(?:seldom|anew|lately|in vain|whereby|wherein|therein|thereof|whereof|for ever|
        for good|hitherto|alike|of late|by and by)\b
      `,
    ),
    written: 'Callers connect anew.',
    better: 'Callers reconnect.',
    passes: 'Callers reconnect after 10 seconds.',
  },
  {
    name: 'a-sentence',
    find: match(/(?:[;:] |\bor |\bgives )a sentence\b|, a sentence[.,;:]|^A sentence[.,;]/i),
    written: 'The server that the options name, or a sentence.',
    better: 'Returns the server that the options name, or an error message.',
    passes: 'The maximum number of words in a sentence.',
  },
  {
    name: 'in-the-place-of',
    find: match(/\bin the place of\b/i),
    written: 'A limit in the place of the one in the policy.',
    better: 'A limit that replaces the one in the policy.',
    passes: 'A limit that replaces the one in the policy.',
  },
  {
    name: 'away',
    find: match(/\b(?:is|are|was|were|stays?) away\b(?! from)/i),
    written: 'Buckets in memory decide while Redis is away.',
    better: 'Buckets in memory decide while Redis is unavailable.',
    passes: 'Keep the key away from other users.',
  },
  {
    name: 'glossary',
    find: match(/\b(?:past full|turn(?:s|ed)? away|thrown out|put in force)\b/i),
    written: 'A bucket that an operator filled past full.',
    better: 'A bucket with a surplus.',
    passes: 'The bucket is full.',
  },
];
