import { describe, expect, test } from 'vitest';
import { etcdVersion, startEtcd } from './servers/etcd-server.ts';
import { describeConformance } from './suite.ts';

const version = etcdVersion();

if (version !== undefined) {
  describeConformance({ kind: 'etcd', apiVersion: version, start: startEtcd });
} else {
  describe('conformance of etcd', () => {
    test('needs the program etcd (Debian package etcd-server)', ({ skip }) => {
      expect(process.env['CI'], 'CI must have etcd').toBeUndefined();
      skip('etcd is not installed: the expectations were not proven against it');
    });
  });
}
