import { describeLock } from './lock-tests.ts';

// `commands.long.test.ts` has the same on etcd.
describeLock('Tenure');
