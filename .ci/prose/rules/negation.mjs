import { match, phrase } from '../find.mjs';

export const NEGATION = [
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
  {
    name: 'has-none',
    find: match(/\b(?:that|which|who) (?:has|have|had) none\b|\b(?:has|have|had) (?:nothing|nobody)\b/i),
    written: 'A domain that has none.',
    better: 'A domain without limits.',
    passes: 'The domain has no limits.',
  },
];
