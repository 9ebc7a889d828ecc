import { once } from 'node:events'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { expect, test } from 'vitest'
import { type CertificateRequest, createCa, type TestCa } from '../../src/ceph/test-ca.ts'

const ca = await createCa()
const days = (count: number) => new Date(Date.now() + count * 86_400_000)

/** Returns the code of the error that a client with the CA `trusted` gets, or undefined if it accepts the certificate. */
const connectAndGetError = async (
  certificate: CertificateRequest,
  servername: string,
  trusted: TestCa = ca,
): Promise<string | undefined> => {
  const server = createServer(await ca.issue(certificate), (socket: TLSSocket) => socket.end())
  server.on('tlsClientError', () => {})
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const socket = connect({ port, host: '127.0.0.1', servername, ca: trusted.cert })
  try {
    await once(socket, 'secureConnect')
    return undefined
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  } finally {
    socket.destroy()
    server.close()
  }
}

test.each([
  ['its name', { names: ['a.example', 'b.example'] }, 'b.example', undefined],
  ['a wildcard', { names: ['*.pool.example'] }, 'any.pool.example', undefined],
  ['another name', { names: ['a.example'] }, 'b.example', 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ['expired', { names: ['a.example'], notBefore: days(-9), notAfter: days(-2) }, 'a.example', 'CERT_HAS_EXPIRED'],
  ['not yet valid', { names: ['a.example'], notBefore: days(1), notAfter: days(2) }, 'a.example', 'CERT_NOT_YET_VALID'],
  ['without a name', { names: [] }, 'a.example', 'ERR_TLS_CERT_ALTNAME_INVALID'],
])('a certificate: %s', async (_, certificate, servername, code) => {
  expect(await connectAndGetError(certificate, servername)).toBe(code)
})

test('another CA with the same name is not trusted', async () => {
  expect(await connectAndGetError({ names: ['a.example'] }, 'a.example', await createCa())).toMatch(
    /SIGNATURE|UNABLE_TO|SELF_SIGNED/,
  )
})
