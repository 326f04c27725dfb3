import { chosen } from '../process/chosen.js';

const CODECS = ['fast', 'reference'] as const;

/**
 * The codec (setting RLS_CODEC) that tests run on which measure what messages cost: WEIR_TEST_CODEC, else weir's
 * default. `npm run test:matrix` runs them a second time with the other one.
 */
export function chosenCodec(): (typeof CODECS)[number] {
  return chosen('WEIR_TEST_CODEC', CODECS) ?? 'fast';
}
