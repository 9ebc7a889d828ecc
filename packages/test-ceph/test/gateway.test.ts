import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { freePort } from '@pool/dev-server/ports'
import { ServerExitedError } from '@pool/dev-server/server-process'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Gateway, type GatewayUser, startGateway } from '../src/gateway.ts'
import { createCa } from '../src/test-ca.ts'
import { isSkipped } from './parts.ts'
import { running } from './running.ts'
import { call, callSigned } from './signed-request.ts'

const keys = { accessKey: 'AKIAOFATENANT', secretKey: 'secret-of-a-tenant/0123456789' }
const others = { accessKey: 'AKIAOFANOTHER', secretKey: 'secret-of-another+0123456789' }
const minutes = (count: number) => new Date(Date.now() + count * 60_000)

describe.skipIf(isSkipped)('a gateway', () => {
  let gateway: Gateway
  let user: GatewayUser
  let temporary: string

  beforeAll(async () => {
    temporary = await mkdtemp(join(tmpdir(), 'gateways-'))
    vi.stubEnv('TMPDIR', temporary)
    gateway = await startGateway({ names: ['*.storage.example'] })
    user = await gateway.addUser(keys)
  })
  afterAll(async () => {
    await gateway?.stop()
    vi.unstubAllEnvs()
    await rm(temporary, { recursive: true, force: true })
  })

  test.each(['fsn1', 'nbg1', 'hel1'])('lists the buckets of the signing user, in %s', async region => {
    const { status, text } = await callSigned(gateway, keys, { region })
    expect(status).toBe(200)
    expect(text).toContain(`<Owner><ID>${user.id}</ID>`)
    expect(text).toContain('<Buckets></Buckets>')
  })

  test.each([
    ['a wrong secret', { ...keys, secretKey: 'wrong' }, minutes(0), 'SignatureDoesNotMatch'],
    ['an unknown key', { ...keys, accessKey: 'AKIAUNKNOWN' }, minutes(0), 'InvalidAccessKeyId'],
    ['a clock 20 minutes late', keys, minutes(-20), 'RequestTimeTooSkewed'],
    ['a clock 20 minutes early', keys, minutes(20), 'RequestTimeTooSkewed'],
  ])('refuses %s', async (_, signer, at, code) => {
    const { status, text } = await callSigned(gateway, signer, { at })
    expect({ status, text }).toEqual({ status: 403, text: expect.stringContaining(`<Code>${code}</Code>`) })
  })

  test('answers to no signature as to anybody, and to one that it cannot read with 400', async () => {
    const anonymous = await call(gateway)
    expect(anonymous.status).toBe(200)
    expect(anonymous.text).toContain('<Owner><ID>anonymous</ID>')
    const garbage = await call(gateway, { headers: { authorization: 'AWS4-HMAC-SHA256 garbage' } })
    expect(garbage.status).toBe(400)
  })

  test('makes a bucket in whichever region it is asked to, and shows it to its owner alone', async () => {
    const other = await gateway.addUser(others)
    for (const region of ['fsn1', 'hel1']) {
      const made = await callSigned(gateway, keys, {
        region,
        method: 'PUT',
        path: `/bucket-${region}`,
        body: `<CreateBucketConfiguration><LocationConstraint>${region}</LocationConstraint></CreateBucketConfiguration>`,
      })
      expect(made).toEqual({ status: 200, text: '' })
    }
    expect((await callSigned(gateway, keys)).text).toMatch(/<Name>bucket-fsn1<.*<Name>bucket-hel1</)
    const seen = await callSigned(gateway, others)
    expect(seen.text).toContain(`<ID>${other.id}</ID>`)
    expect(seen.text).toContain('<Buckets></Buckets>')
    expect((await callSigned(gateway, others, { path: '/bucket-fsn1' })).status).toBe(403)
  })

  test('refuses a suspended user from then on', async () => {
    const third = { accessKey: 'AKIATHIRD', secretKey: 'secret-of-the-third' }
    const suspended = await gateway.addUser(third)
    expect((await callSigned(gateway, third)).status).toBe(200)
    await suspended.suspend()
    const { status, text } = await callSigned(gateway, third)
    expect({ status, text }).toEqual({ status: 403, text: expect.stringContaining('<Code>UserSuspended</Code>') })
    expect((await callSigned(gateway, keys)).status).toBe(200)
  })

  test('says why a user cannot be added, without the secret', async () => {
    const again = gateway.addUser({ ...keys, secretKey: 'marked-secret' })
    await expect(again).rejects.toThrow(/radosgw-admin failed .*duplicate key/s)
    await expect(again).rejects.not.toThrow(/marked-secret/)
  })

  test('is trusted for its names by a client that trusts its authority', async () => {
    expect(await readFile(gateway.caFile, 'utf8')).toBe(gateway.ca)
    const { cert } = await createCa('test CA of the object gateway')
    await expect(call(gateway, { ca: null })).rejects.toThrow(/self-signed|unable to (get|verify)/)
    await expect(call(gateway, { ca: cert })).rejects.toThrow(/self-signed|unable to (get|verify)|signature failure/)
    await expect(call(gateway, { servername: 'storage.example' })).rejects.toThrow(
      /does not match certificate's altnames/,
    )
    await expect(call(gateway, { servername: 'a.b.storage.example' })).rejects.toThrow(/does not match/)
  })

  test('takes other ports when the first are taken, and leaves nothing, beside another that runs on', async () => {
    const before = await readdir(temporary)
    const ports = [gateway.port, await freePort(), await freePort(), gateway.port]
    const second = await startGateway({ names: [], findPort: async () => ports.shift() ?? freePort() })
    const folder = dirname(second.caFile)
    expect(ports).toEqual([])
    expect(await readdir(temporary)).toEqual([...before, basename(folder)].sort())
    expect(running(folder)).toHaveLength(3)
    await second.stop()
    expect(running(folder)).toEqual([])
    expect(await readdir(temporary)).toEqual(before)
    await expect(call(second)).rejects.toThrow(/ECONNREFUSED/)
    expect((await call(gateway)).status).toBe(200)
  })

  test('gives up when no ports will do, and leaves nothing then', async () => {
    const before = await readdir(temporary)
    const findPort = vi.fn(async () => gateway.port)
    await expect(startGateway({ names: [], findPort })).rejects.toThrow(ServerExitedError)
    expect(findPort).toHaveBeenCalledTimes(5 * 2)
    expect(await readdir(temporary)).toEqual(before)
  })

  test('tries once where other ports would not help, and leaves nothing then', async () => {
    const before = await readdir(temporary)
    const findPort = vi.fn(() => Promise.reject(new Error('no free port')))
    await expect(startGateway({ names: [], findPort })).rejects.toThrow('no free port')
    expect(findPort).toHaveBeenCalledTimes(1)
    expect(await readdir(temporary)).toEqual(before)
  })
})
