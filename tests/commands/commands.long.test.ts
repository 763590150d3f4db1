import { describeElect } from './elect-tests.ts';
import { describeLock } from './lock-tests.ts';

// On the server that the commands were not made for. Before a commit they are run on Tenure alone.
describeLock('etcd');
describeElect('etcd');
