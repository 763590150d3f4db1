import { describeEtcdContract } from './etcd-contract.ts';

// `backend-contracts.long.test.ts` has it on etcd too, and all rounds of it.
describeEtcdContract('Tenure', 'few');
