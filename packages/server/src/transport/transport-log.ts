/**
 * What the transport says about its connections. A pino logger is one. Never called once per request of a client that
 * behaves.
 */
export interface TransportLog {
  debug(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}
