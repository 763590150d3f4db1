export type { DynamoClient } from './dynamo-client.ts';
export { dynamodbBackend } from './dynamodb-backend.ts';
export type { DynamodbBackend, DynamodbBackendOptions } from './dynamodb-backend.ts';
