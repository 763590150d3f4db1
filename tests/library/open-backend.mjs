/**
 * Opens the backend of a specification from another process, and returns it with a function that closes it and its
 * connections.
 */
export async function openBackend(spec, ttlMs) {
  switch (spec.kind) {
    case 'memory': {
      const { memoryBackend } = await import('tenure/memory');
      const backend = memoryBackend();
      return { backend, end: () => backend.close() };
    }
    case 'etcd': {
      const { etcdBackend } = await import('tenure/etcd');
      const backend = etcdBackend({ client: { endpoints: spec.address, timeoutMs: Math.max(1000, ttlMs / 2) } });
      return { backend, end: () => backend.close() };
    }
    case 'postgres': {
      const { default: pg } = await import('pg');
      const { postgresBackend } = await import('tenure/postgres');
      const timeouts = { connectionTimeoutMillis: 1000, query_timeout: 1000 };
      const pool = new pg.Pool({
        connectionString: spec.address,
        max: 2,
        allowExitOnIdle: spec.allowExitOnIdle ?? false,
        ...timeouts,
      });
      // A pool reports a broken connection by an event, which must not end the process.
      pool.on('error', () => undefined);
      const connect = () => new pg.Client({ connectionString: spec.address, ...timeouts });
      const backend = postgresBackend({
        pool,
        pollIntervalMs: 500,
        schema: spec.schema ?? 'public',
        ...(spec.listens ? { listen: connect } : {}),
      });
      return { backend, end: () => backend.close().then(() => pool.end()) };
    }
    case 'mysql': {
      const { default: mysql } = await import('mysql2/promise');
      const { mysqlBackend } = await import('tenure/mysql');
      const pool = mysql.createPool({ ...spec.options, connectTimeout: 1000 });
      const backend = mysqlBackend({ pool, pollIntervalMs: 500 });
      return { backend, end: () => backend.close().then(() => pool.end()) };
    }
    case 'sqlite': {
      const { default: Database } = await import('libsql');
      const { sqliteBackend } = await import('tenure/sqlite');
      const database = new Database(spec.path);
      const backend = sqliteBackend({ database });
      return { backend, end: () => backend.close().then(() => database.close()) };
    }
    case 'dynamodb': {
      const { DynamoDB } = await import('@aws-sdk/client-dynamodb');
      const { dynamodbBackend } = await import('tenure/dynamodb');
      const credentials = { accessKeyId: 'any', secretAccessKey: 'any' };
      const client = new DynamoDB({ endpoint: `http://${spec.address}`, region: 'local', credentials });
      const backend = dynamodbBackend({ client, table: 'leases', pollIntervalMs: 250 });
      return { backend, end: async () => client.destroy() };
    }
    default:
      throw new Error(`no backend is called ${spec.kind}`);
  }
}
