import { expect, test } from 'vitest'
import { toListenError } from './http-server.ts'

test.each([
  ['EADDRINUSE', /^PORT: port 80 is in use; stop the process that has it, or set another port in PORT \(EADDRINUSE\)$/],
  ['EADDRNOTAVAIL', /^ADDRESS: this machine does not have the address; correct ADDRESS \(EADDRNOTAVAIL\)$/],
  ['EACCES', /^PORT: only root may listen on port 80; set a port from 1024 on in PORT, .*\(EACCES\)$/],
  ['EINVAL', /^PORT: cannot listen on port 80; correct PORT \(EINVAL\)$/],
])('a port or an address that cannot be bound: %s', (code, message) => {
  const error = Object.assign(new Error('listen'), { code })
  const { message: actual } = toListenError(error, { variable: 'PORT', port: 80, addressVariable: 'ADDRESS' })
  expect(actual).toMatch(message)
})
