/* `npm run docs:golden` writes the golden files. Review the diff before you commit it. */
import { writeGolden } from './golden.js';

writeGolden().then(
  () => process.exit(0),
  (error: Error) => {
    console.error(error);
    process.exit(1);
  },
);
