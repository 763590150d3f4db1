/** The log of the transport, such as a pino logger. Never called once per request of a well-behaved client. */
export interface TransportLog {
  debug(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}
