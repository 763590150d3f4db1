/**
 * An invalid setting. The message continues after the setting's name and value: 'must be ...', '... is not implemented
 * yet'.
 */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ConfigError';
  }
}
