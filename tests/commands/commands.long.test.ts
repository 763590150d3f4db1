import { describeElect } from './elect-tests.ts';
import { describeLock } from './lock-tests.ts';

// The same tests on etcd. Before a commit they run on Tenure only.
describeLock('etcd');
describeElect('etcd');
