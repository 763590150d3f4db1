/**
 * A setting that cannot be used. The message goes on after the setting's name and value: 'must be ...', '... is
 * not there yet'.
 */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ConfigError';
  }
}
