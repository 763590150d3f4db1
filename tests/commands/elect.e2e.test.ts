import { describeElect } from './elect-tests.ts';

// `commands.long.test.ts` has the same on etcd.
describeElect('Tenure');
