import { startTenure } from '../../conformance/servers/tenure-server.ts';
import { describeConformance } from '../../conformance/suite.ts';

/** The version of etcd's API that Tenure reports, in Status and at /version. */
const apiVersion = '3.6.0';

// `npm test` tests the memory engine; here every write waits for the disk.
describeConformance({ kind: 'tenure', apiVersion, start: (options) => startTenure(options, 'file') });
