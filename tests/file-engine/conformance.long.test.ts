import { startTenure } from '../../conformance/servers/tenure-server.ts';
import { describeConformance } from '../../conformance/suite.ts';

/** The etcd API that Tenure says it speaks, in Status and at /version. */
const apiVersion = '3.6.0';

// `npm test` asks the memory engine; every write here waits for the disk.
describeConformance({ kind: 'tenure', apiVersion, start: (options) => startTenure(options, 'file') });
