import { ConfigError } from './config-error.ts';
import { setting } from './setting.ts';

/** What web pages may do, with the names of etcd's flags. */
export const webSettings = {
  cors: setting({
    group: 'Clients',
    value: 'ORIGIN,...',
    fallback: '',
    fallbackShown: 'none',
    help:
      'Origins, such as https://example.com, whose web pages may use the JSON gateway; "*" for all (the default of ' +
      'etcd). A request that names another origin is refused.',
    parse: parseOrigins,
  }),
  hostWhitelist: setting({
    group: 'Clients',
    value: 'HOST,...',
    fallback: '*',
    help: 'Names and addresses by which HTTP clients may reach http:// addresses, "*" for all. gRPC is not concerned.',
    parse: listOfNames,
  }),
} as const;

function listOfNames(text: string): readonly string[] {
  return Object.freeze(
    text
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  );
}

function parseOrigins(text: string): readonly string[] {
  const origins = listOfNames(text);
  for (const origin of origins) {
    if (origin !== '*' && !isOrigin(origin)) {
      throw new ConfigError('must be "*" or origins like https://example.com:8080, separated by commas');
    }
  }
  return origins;
}

/** As browsers write it: without a path, in lower case. */
function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^[a-z][a-z0-9+.-]*:\/\/[^/]+$/.test(text);
}
