import { expect, test } from 'vitest';
import { parseAuthToken } from './auth-token.ts';

test.each([
  ['', /must be simple, or jwt/],
  ['jwt', /must have a sign-method of RS256/],
  ['jwt,sign-method=none,priv-key=a', /must have a sign-method/],
  ['jwt,sign-method=RS256', /must have priv-key=FILE, or pub-key=FILE/],
  ['jwt,sign-method=HS256,pub-key=a', /must have priv-key=FILE with the secret of HS256/],
  ['jwt,sign-method=HS256,priv-key=a,pub-key=a', /and no pub-key/],
  ['jwt,sign-method=RS256,priv-key=a,ttl=0', /must have a ttl from 1s/],
  ['jwt,sign-method=RS256,priv-key=a,ttl=5', /must have a ttl from 1s/],
  ['jwt,sign-method=RS256,priv-key=a,ttl=9000h', /must have a ttl from 1s/],
  ['jwt,sign-method=RS256,priv-key=a,priv-key=b', /must have priv-key once/],
  ['jwt,sign-method=RS256,key=a', /must have no other options than pub-key, priv-key/],
])('%j is refused', (text, message) => {
  expect(() => parseAuthToken(text)).toThrow(message);
});
