import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import { expect, test } from 'vitest'
import { FuzzConnection } from '../../src/fuzz/connection.ts'
import { fakeTerraform, startApi } from '../../src/fuzz/environment/api.ts'
import { createTenantLedger, toTenantMark } from '../../src/fuzz/oracle/tenants.ts'

const deployments = '/api/v1/deployments'

/** Its log lines name the machines that earlier runs destroyed under the FQDN. */
const leakyTerraform = fakeTerraform
  .replace('\nline()', '\nformer="$0.$TF_VAR_sovereign_fqdn"\nline()')
  .replace('"$2" "$machine"', '"$2" "$machine $(cat "$former" 2>/dev/null)"')
  .replace('destroy)\n', 'destroy)\n  printf %s "$machine" >>"$former"\n')

/** Two clients have one FQDN, one after the other. Returns the violations that the oracle finds, and how often that is. */
const runInSuccession = async (terraform: string) => {
  await using cleanup = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'pool-fuzz-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const { port, operatorPort, operatorToken } = await startApi(folder, 'MARKmark', cleanup, terraform)
  using connection = new FuzzConnection({ port, deadlineMs: 25_000 })
  const ledger = createTenantLedger()
  const violations: string[] = []

  const send = async (tenant: number, row: string, method: string, target: string, token?: string, body?: object) => {
    const headers = token === undefined ? [] : [`X-Deployment-Token: ${token}`]
    const request = {
      ...{ row, tenant, method, target, headers },
      ...(body && { body: Buffer.from(JSON.stringify(body)) }),
    }
    const outcome = await connection.send(request)
    violations.push(...ledger.check({ request, outcome, sentAt: 0, answeredAt: 1 }))
    if (outcome.kind !== 'response') throw new Error(`${row}: ${outcome.kind}`)
    return outcome.response
  }
  for (const tenant of [1, 2]) {
    const body = deploymentRequest('acme', { orgName: `Fuzz ${toTenantMark(tenant)}` })
    const created = await send(tenant, 'createDeployment', 'POST', deployments, undefined, body)
    expect(created.status, created.text).toBe(201)
    const { id, deploymentToken } = JSON.parse(created.text)
    const own = `${deployments}/${id}`
    // The response ends with the run.
    await send(tenant, 'followDeployment', 'GET', `${own}/logs`)
    expect((await send(tenant, 'destroyDeployment', 'POST', `${own}/destroy`, deploymentToken, {})).status).toBe(202)
    await send(tenant, 'followDeployment', 'GET', `${own}/logs`)
    expect((await send(tenant, 'removeDeployment', 'DELETE', own, deploymentToken)).status).toBe(204)
    await fetch(`http://127.0.0.1:${operatorPort}/api/v1/pool/pool.test/cool-off/acme`, {
      method: 'DELETE',
      headers: { Authorization: `Bearer ${operatorToken}` },
    })
  }
  return { violations: new Set(violations), successions: ledger.successions() }
}

test.each([
  ['keeps the machines of each client apart', fakeTerraform, []],
  [
    'shows the machines of the former client of the FQDN',
    leakyTerraform,
    ['another tenant: its name or its resources'],
  ],
])('a Terraform that %s', async (_, terraform, violations) => {
  expect(await runInSuccession(terraform)).toEqual({ violations: new Set(violations), successions: 1 })
})
