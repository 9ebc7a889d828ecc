import { expect, test } from 'vitest'
import { classifyTokenResponse } from './check-token.ts'

test.each([
  [200, 'accepted', /^hetzner accepts/],
  [204, 'accepted', /accepts/],
  [299, 'accepted', /accepts/],
  [401, 'rejected', /rejects/],
  [403, 'rejected', /rejects/],
  [199, 'unavailable', /status 199/],
  [301, 'unavailable', /redirect/],
  [399, 'unavailable', /redirect/],
  [400, 'unavailable', /status 400/],
  [404, 'unavailable', /status 404/],
  [429, 'unavailable', /limiting the request rate/],
  [500, 'unavailable', /status 500/],
  [503, 'unavailable', /status 503/],
])('%i: %s', (status, kind, message) => {
  expect(classifyTokenResponse('hetzner', status)).toEqual({ kind, message: expect.stringMatching(message) })
})
