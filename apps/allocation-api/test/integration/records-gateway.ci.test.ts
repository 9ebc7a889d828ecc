import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, isListening } from '@pool/dev/ports'
import { findProgram, startServerAndWait } from '@pool/dev/server-process'
import { createCa } from '@pool/test-kit/ceph/test-ca.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { expect, test } from 'vitest'
import { startTestService } from '../support/service.ts'
import { challenge, createTenants, OPERATOR_TOKEN, recordsEnv } from '../support/tenant-records.ts'

const readPage = (name: string) => readFileSync(new URL(`../../../../docs/operate/${name}.md`, import.meta.url), 'utf8')
const readBlock = (name: string, language: string): string =>
  new RegExp(`\`\`\`${language}\n([^\`]*)\`\`\``).exec(readPage(name))?.[1] ?? ''

const service = await startTestService({ ...recordsEnv, PDM_TRUSTED_PROXIES: '127.0.0.1' })
const { createTenant } = createTenants(service)

const gateways = [
  {
    name: 'nginx',
    // The upstream of the other page, and the server of this one.
    toConfig: (folder: string) =>
      `daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr; events { worker_connections 64; }\nhttp { access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;\n${readBlock('proxies', 'nginx').split('server {')[0]}${readBlock('records', 'nginx')}}`,
    toCommand: (program: string, file: string) => [program, '-c', file],
  },
  {
    name: 'haproxy',
    toConfig: () => {
      const [defaults = '', rest = ''] = readBlock('proxies', 'haproxy').split('frontend clients')
      return `global\n  maxconn 64\n${defaults}${readBlock('records', 'haproxy')}\n${rest.slice(rest.indexOf('\nbackend '))}`
    },
    toCommand: (program: string, file: string) => [program, '-db', '-f', file],
  },
] as const

test.each(gateways)(
  '$name as documented exposes what tools of tenants call, with TLS, and nothing else',
  async gateway => {
    const { name, toConfig, toCommand } = gateway
    const program = findProgram(name)
    if (shouldSkip(program ? undefined : `${name} is not installed, its test is skipped: apt-get install ${name}`))
      return
    const { send: direct, token } = await createTenant(name)
    const folder = await mkdtemp(join(tmpdir(), 'pool-records-'))
    await chmod(folder, 0o755)
    const ca = await createCa()
    const { key, cert } = await ca.issue({ names: ['records.pool.example'] })
    const port = await freePort()
    const config = toConfig(folder)
      .replace(/(listen |bind :)443/, name === 'nginx' ? `listen 127.0.0.1:${port}` : `bind 127.0.0.1:${port}`)
      .replaceAll('/etc/ssl/', `${folder}/`)
      .replace('10.0.0.1:8080', `127.0.0.1:${service.api.port}`)
    const pem = name === 'nginx' ? cert : `${cert}\n${key}`
    for (const [file, text] of Object.entries({ config, 'records.pem': pem, 'records.key': key }))
      await writeFile(join(folder, file), text)
    const stop = await startServerAndWait({
      name,
      folder,
      command: toCommand(program as string, join(folder, 'config')),
      isUp: () => isListening(port),
    })
    const send = (method: string, path: string, body = '', authorization = `Bearer ${token}`) =>
      new Promise<number | undefined>((resolve, reject) => {
        const options = { host: '127.0.0.1', port, method, path, ca: ca.cert, servername: 'records.pool.example' }
        request({ ...options, headers: { Authorization: authorization, Host: 'records.pool.example' } }, response =>
          response.resume().on('end', () => resolve(response.statusCode)),
        )
          .on('error', reject)
          .end(body)
      })
    // HAProxy serves once its check of the backend has passed.
    await expect.poll(() => send('GET', '/api/v1/records')).toBe(200)
    const fqdn = `_acme-challenge.${name}.pool.test.`
    const large = JSON.stringify({ fqdn, value: challenge('a') }).padEnd(1_000_000)
    expect(await send('POST', '/api/v1/records/httpreq/present', large)).toBe(200)
    expect(await send('GET', '/api/v1/records/external-dns/records')).toBe(200)
    // The reasons are in a header, for which gateways have little room.
    const rejected = Array.from({ length: 30 }, (_, n) => ({
      dnsName: `${'\u00fc'.repeat(100)}${n}.${fqdn}`,
      recordType: 'A',
      targets: ['192.0.2.1'],
    }))
    expect(await send('POST', '/api/v1/records/external-dns/adjustendpoints', JSON.stringify(rejected))).toBe(200)
    expect(await send('GET', '/api/v1/records', '', `Bearer ${OPERATOR_TOKEN}`)).toBe(401)
    for (const path of [
      '/',
      '/metrics',
      '/api/v1/reserved',
      '/api/v1/recordsx',
      '/api/v1/pool/pool.test/check?sub=a',
      '/api/v1/records/../pool/pool.test/check?sub=a',
      '/api/v1/records/%2e%2e/pool/pool.test/check?sub=a',
      '/api/v1/records/..%2fpool/pool.test/check?sub=a',
      '//api/v1/records',
    ])
      expect([path, await send('GET', path)]).toEqual([
        path,
        expect.toSatisfy(status => status === 404 || status === 400),
      ])
    await direct('POST', '/httpreq/cleanup', { fqdn, value: challenge('a') })
    await stop()
    await rm(folder, { recursive: true, force: true })
  },
)
