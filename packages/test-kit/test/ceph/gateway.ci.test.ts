import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { freePort } from '@pool/dev/ports'
import { ServerExitedError } from '@pool/dev/server-process'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Gateway, type GatewayUser, startGateway } from '../../src/ceph/gateway.ts'
import { createCa } from '../../src/ceph/test-ca.ts'
import { call, callSigned, findRunningPrograms, isSkipped } from './support.ts'

const keys = { accessKey: 'AKIAOFATENANT', secretKey: 'secret-of-a-tenant/0123456789' }
const otherKeys = { accessKey: 'AKIAOFANOTHER', secretKey: 'secret-of-another+0123456789' }
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
    ['a clock 20 minutes behind', keys, minutes(-20), 'RequestTimeTooSkewed'],
    ['a clock 20 minutes ahead', keys, minutes(20), 'RequestTimeTooSkewed'],
  ])('rejects %s', async (_, signer, at, code) => {
    const { status, text } = await callSigned(gateway, signer, { at })
    expect({ status, text }).toEqual({ status: 403, text: expect.stringContaining(`<Code>${code}</Code>`) })
  })

  test('treats an unsigned request as anonymous and responds 400 to an invalid signature', async () => {
    const anonymous = await call(gateway)
    expect(anonymous.status).toBe(200)
    expect(anonymous.text).toContain('<Owner><ID>anonymous</ID>')
    const garbage = await call(gateway, { headers: { authorization: 'AWS4-HMAC-SHA256 garbage' } })
    expect(garbage.status).toBe(400)
  })

  test('creates buckets in any requested region and lists them only for their owner', async () => {
    const other = await gateway.addUser(otherKeys)
    for (const region of ['fsn1', 'hel1']) {
      const created = await callSigned(gateway, keys, {
        region,
        method: 'PUT',
        path: `/bucket-${region}`,
        body: `<CreateBucketConfiguration><LocationConstraint>${region}</LocationConstraint></CreateBucketConfiguration>`,
      })
      expect(created).toEqual({ status: 200, text: '' })
    }
    expect((await callSigned(gateway, keys)).text).toMatch(/<Name>bucket-fsn1<.*<Name>bucket-hel1</)
    const listed = await callSigned(gateway, otherKeys)
    expect(listed.text).toContain(`<ID>${other.id}</ID>`)
    expect(listed.text).toContain('<Buckets></Buckets>')
    expect((await callSigned(gateway, otherKeys, { path: '/bucket-fsn1' })).status).toBe(403)
  })

  test('rejects later requests of a suspended user', async () => {
    const third = { accessKey: 'AKIATHIRD', secretKey: 'secret-of-the-third' }
    const suspended = await gateway.addUser(third)
    expect((await callSigned(gateway, third)).status).toBe(200)
    await suspended.suspend()
    const { status, text } = await callSigned(gateway, third)
    expect({ status, text }).toEqual({ status: 403, text: expect.stringContaining('<Code>UserSuspended</Code>') })
    expect((await callSigned(gateway, keys)).status).toBe(200)
  })

  test('reports why a user cannot be added, without the secret', async () => {
    const duplicate = gateway.addUser({ ...keys, secretKey: 'marked-secret' })
    await expect(duplicate).rejects.toThrow(/radosgw-admin failed .*duplicate key/s)
    await expect(duplicate).rejects.not.toThrow(/marked-secret/)
  })

  test('has a certificate for its names, which only a client that trusts its CA accepts', async () => {
    expect(await readFile(gateway.caFile, 'utf8')).toBe(gateway.ca)
    const { cert } = await createCa('test CA of the object gateway')
    await expect(call(gateway, { ca: null })).rejects.toThrow(/self-signed|unable to (get|verify)/)
    await expect(call(gateway, { ca: cert })).rejects.toThrow(/self-signed|unable to (get|verify)|signature failure/)
    await expect(call(gateway, { servername: 'storage.example' })).rejects.toThrow(
      /does not match certificate's altnames/,
    )
    await expect(call(gateway, { servername: 'a.b.storage.example' })).rejects.toThrow(/does not match/)
  })

  test('uses other ports if the first ones are in use; a stop removes its files and does not affect another gateway', async () => {
    const before = await readdir(temporary)
    const ports = [gateway.port, await freePort(), await freePort(), gateway.port]
    const second = await startGateway({ names: [], findPort: async () => ports.shift() ?? freePort() })
    const folder = dirname(second.caFile)
    expect(ports).toEqual([])
    expect(await readdir(temporary)).toEqual([...before, basename(folder)].sort())
    expect(findRunningPrograms(folder)).toHaveLength(3)
    await second.stop()
    expect(findRunningPrograms(folder)).toEqual([])
    expect(await readdir(temporary)).toEqual(before)
    await expect(call(second)).rejects.toThrow(/ECONNREFUSED/)
    expect((await call(gateway)).status).toBe(200)
  })

  test('fails after five attempts with ports in use, and leaves no files', async () => {
    const before = await readdir(temporary)
    const findPort = vi.fn(async () => gateway.port)
    await expect(startGateway({ names: [], findPort })).rejects.toThrow(ServerExitedError)
    expect(findPort).toHaveBeenCalledTimes(5 * 2)
    expect(await readdir(temporary)).toEqual(before)
  })

  test('does not retry an error that other ports cannot fix, and leaves no files', async () => {
    const before = await readdir(temporary)
    const findPort = vi.fn(() => Promise.reject(new Error('no free port')))
    await expect(startGateway({ names: [], findPort })).rejects.toThrow('no free port')
    expect(findPort).toHaveBeenCalledTimes(1)
    expect(await readdir(temporary)).toEqual(before)
  })
})
