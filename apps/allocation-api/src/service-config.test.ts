import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toFileVariable } from '@pool/runtime/service/env'
import { afterAll, expect, test } from 'vitest'
import { SECRET_VARIABLES } from './config/variables.ts'
import { readServiceConfig } from './service-config.ts'

const folder = mkdtempSync(join(tmpdir(), 'service-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

const values: Record<(typeof SECRET_VARIABLES)[number], string> = {
  PDM_DATABASE_URL: 'postgres://u:mark@h/d',
  PDM_OPERATOR_TOKENS: 'mark-a,mark-b',
  PDM_WITNESS_TOKEN: 'mark-w',
  DNSPROVIDER_POWERDNS_API_KEY: 'mark-key',
  DNSPROVIDER_CLOUDFLARE_API_TOKEN: 'mark-token',
  DNSPROVIDER_DYNADOT_API_KEY: 'mark-key',
  DNSPROVIDER_RFC2136_TSIG_SECRET: 'bWFyaw==',
}
const providerOf: Readonly<Record<string, Record<string, string>>> = {
  PDM_WITNESS_TOKEN: { PDM_WITNESS_URL: 'http://witness.test' },
  DNSPROVIDER_POWERDNS_API_KEY: { DNSPROVIDER_KIND: 'powerdns', DNSPROVIDER_POWERDNS_URL: 'http://dns.test' },
  DNSPROVIDER_CLOUDFLARE_API_TOKEN: { DNSPROVIDER_KIND: 'cloudflare' },
  DNSPROVIDER_DYNADOT_API_KEY: { DNSPROVIDER_KIND: 'dynadot' },
  DNSPROVIDER_RFC2136_TSIG_SECRET: {
    DNSPROVIDER_KIND: 'rfc2136',
    DNSPROVIDER_RFC2136_HOST: 'dns.test',
    DNSPROVIDER_RFC2136_TSIG_NAME: 'key.test',
  },
}
const base = { PDM_DATABASE_URL: 'postgres://h/d' }

test.each(SECRET_VARIABLES)('%s can come from a file', variable => {
  const path = join(folder, variable)
  writeFileSync(path, `${values[variable]}\n`)
  const { PDM_DATABASE_URL: _, ...others } = base
  const env = { ...(variable === 'PDM_DATABASE_URL' ? others : base), ...providerOf[variable] }
  const fromFile = readServiceConfig({ ...env, [toFileVariable(variable)]: path })
  const fromEnvironment = readServiceConfig({ ...env, [variable]: values[variable] })
  expect(fromFile).toHaveProperty('config')
  // The functions of the provider are different objects.
  expect(JSON.stringify(fromFile)).toBe(JSON.stringify(fromEnvironment))
  expect('config' in fromFile && fromFile.config.env).toEqual('config' in fromEnvironment && fromEnvironment.config.env)
})

test.each(SECRET_VARIABLES)('%s and its file are an error, and so is a file that cannot be read', variable => {
  const env = { ...base, ...providerOf[variable] }
  const path = join(folder, 'no-such-file')
  const fileVariable = toFileVariable(variable)
  expect(readServiceConfig({ ...env, [variable]: values[variable], [fileVariable]: path })).toEqual({
    issues: [{ variable: fileVariable, detail: expect.stringContaining(`together with ${variable}`) }],
  })
  const without = { ...env, [variable]: '' }
  expect(readServiceConfig({ ...without, [fileVariable]: path })).toEqual({
    issues: [{ variable: fileVariable, detail: expect.stringMatching(/no-such-file.*ENOENT/) }],
  })
})

test('one result lists the issues of files and of values', () => {
  const result = readServiceConfig({ PDM_DATABASE_URL_FILE: '/no/such/file', PORT: 'x', DNSPROVIDER_KIND: 'x' })
  expect('issues' in result && result.issues.map(({ variable }) => variable)).toEqual([
    'PDM_DATABASE_URL_FILE',
    'PORT',
    'DNSPROVIDER_KIND',
  ])
})
