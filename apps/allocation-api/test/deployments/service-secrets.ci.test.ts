import { randomBytes } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import { until } from '@pool/test-kit/poll.ts'
import { sendRequest, startApi } from '@pool/test-kit/services.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { toEncodedForms } from '../../src/deployments/terraform/domain/output.ts'
import { createTestDatabase } from '../support/database.ts'
import { isTerraformMissing } from '../terraform/support/terraform.ts'

const secret = (what: string) => `${what}${randomBytes(18).toString('hex')}`
const [operator, second] = [secret('operator'), secret('second')]
const secrets = {
  PDM_OPERATOR_TOKENS: `${operator},${second}`,
  PDM_WITNESS_TOKEN: secret('witness'),
  DNSPROVIDER_POWERDNS_API_KEY: secret('powerdns'),
  DNSPROVIDER_CLOUDFLARE_API_TOKEN: secret('cloudflare'),
  DNSPROVIDER_DYNADOT_API_KEY: secret('dynadot'),
  DNSPROVIDER_RFC2136_TSIG_SECRET: Buffer.from(secret('tsig')).toString('base64'),
}
const needles = Object.values(secrets)
  .flatMap(value => value.split(','))
  .flatMap(toEncodedForms)

/** Prints the environment of the processes above it in four places, in two encodings. */
const hostile = `
locals {
  # Terraform's parent is a shell, and that one's the service.
  shell = try(regex("PPid:\\\\s+(\\\\d+)", file("/proc/self/status"))[0], "none")
  pid   = try(regex("PPid:\\\\s+(\\\\d+)", file("/proc/\${local.shell}/status"))[0], "none")
  all  = try(join(" ", regexall("[!-~]+", base64decode(filebase64("/proc/\${local.pid}/environ")))), replace(file("/proc/\${local.pid}/environ"), "/[^ -~]/", " "), "nothing")
}
output "details" { value = { plain = local.all, encoded = base64encode(local.all) } }
resource "terraform_data" "x" {
  input = "see /proc"
  provisioner "local-exec" { command = "tr '\\\\0' ' ' < /proc/$(sed -n 's/^PPid:[^0-9]*//p' /proc/$(sed -n 's/^PPid:[^0-9]*//p' /proc/$PPID/status)/status)/environ | sed 's/^/seen: /'" }
}
resource "terraform_data" "y" {
  lifecycle {
    precondition {
      condition = !endswith(var.sovereign_fqdn, "fails.pool.test")
      error_message = "It has \${local.all}"
    }
  }
}
`

describe.skipIf(isTerraformMissing)('a module that reads the environment of a service that does not isolate it', () => {
  test('shows no secret in a response, row or log', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'service-secrets-'))
    const database = await createTestDatabase({ connections: 2 })
    mkdirSync(join(folder, 'module'))
    writeFileSync(join(folder, 'module', 'main.tf'), hostile)
    const interfaceFile = new URL('../../../../infra/local-deployment/variables.tf', import.meta.url)
    copyFileSync(interfaceFile, join(folder, 'module', 'variables.tf'))
    const api = await startApi(database.url, {
      ...secrets,
      PDM_WITNESS_URL: 'http://127.0.0.1:9',
      PDM_TERRAFORM_MODULE: join(folder, 'module'),
      PDM_TERRAFORM_ISOLATION: 'off',
      PDM_DEPLOYMENTS_DIR: join(folder, 'deployments'),
      PDM_LOG_LEVEL: 'trace',
    })
    onTestFinished(async () => {
      await api.process.stop()
      await database.drop()
      rmSync(folder, { recursive: true })
    })
    await until('it is logged', () => api.lines.some(line => line.includes('"msg":"terraform not isolated"')))
    const texts: string[] = []
    for (const name of ['applies', 'fails']) {
      const created = await sendRequest(`${api.url}/api/v1/deployments`, 'POST', deploymentRequest(name))
      expect(created.status).toBe(201)
      const path = `/api/v1/deployments/${created.body.id}`
      await until(
        `${name} is finished`,
        async () => (await sendRequest(api.url + path, 'GET')).body.finishedAt !== null,
      )
      for (const suffix of ['', '/logs']) texts.push((await sendRequest(api.url + path + suffix, 'GET')).text)
    }
    const tables = await database.sql<{ name: string }[]>`
      select quote_ident(tablename) as name from pg_tables where schemaname = 'public'`
    for (const { name } of tables) {
      const rows = await database.sql.unsafe<{ row: string }[]>(`select to_jsonb(t)::text as row from ${name} t`)
      texts.push(...rows.map(({ row }) => row))
    }
    texts.push(...api.lines)
    expect(texts.filter(text => text.includes('PDM_OPERATOR_TOKENS=<redacted>'))).not.toEqual([])
    expect(texts.filter(text => needles.some(needle => text.includes(needle)))).toEqual([])
  })
})
