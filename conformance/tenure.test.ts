import { startTenure } from './servers/tenure-server.ts';
import { describeConformance } from './suite.ts';

/** The etcd API version that Tenure reports, in Status and at /version. */
const apiVersion = '3.6.0';

describeConformance({ kind: 'tenure', apiVersion, start: startTenure });
