import { execFile } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { renderQuickstart } from '../src/quickstart.ts'
import { tempFolder } from './fixtures/command.ts'

const text = renderQuickstart({
  apiPort: 18_080,
  operatorPort: 18_081,
  dnsPort: 15_300,
  postgresPort: 15_432,
  pool: 'pool.test',
  dataDir: '/data',
  apiLog: '/data/allocation-api.log',
  postgresLog: '/data/postgres.log',
  postgresPassword: '/data/postgres/password',
  operatorToken: 'o-1',
  operatorTokenFile: '/data/operator-token',
  witnessPort: 18_787,
  witnessLog: '/data/lease-witness.log',
  witnessTokenFile: '/data/witness-token',
  witnessToken: 'w-1',
})

// The commands that a user pastes, with their comments.
const commands = text.slice(text.indexOf('# 1.'), text.indexOf('Ctrl-C'))

test('the printed commands send valid requests', async () => {
  const folder = tempFolder()
  writeFileSync(join(folder, 'witness-token'), 'w-1\n')
  for (const name of ['curl', 'dig']) {
    // Records its arguments and responds as the API does, with the spaces of some JSON serializers.
    const body = `printf '%s\\n' "${name} $*" >>"${folder}/seen"\n`
    writeFileSync(
      join(folder, name),
      `#!/bin/sh\n${body}echo '{"a":1,"id": "d-1","reservationToken": "t-1","deploymentToken": "o-1","createdBy":""}'\n`,
    )
    chmodSync(join(folder, name), 0o755)
  }
  await promisify(execFile)('sh', ['-euc', `${commands.replaceAll('/data/', `${folder}/`)}\nwait`], {
    env: { PATH: `${folder}:${process.env.PATH}` },
  })
  const { stdout } = await promisify(execFile)('cat', [join(folder, 'seen')])
  const api = 'http://127.0.0.1:18080/api/v1/pool/pool.test'
  const commit = {
    subdomain: 'acme',
    reservationToken: 't-1',
    loadBalancerIP: '203.0.113.10',
    sovereignFQDN: 'acme.pool.test',
  }
  const deployments = 'http://127.0.0.1:18080/api/v1/deployments'
  const deployment = {
    orgName: 'Globex',
    orgEmail: 'ops@globex.example',
    sovereignDomainMode: 'pool',
    sovereignPoolDomain: 'pool.test',
    sovereignSubdomain: 'globex',
    providers: ['local'],
    region: 'local',
    sshPublicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f tour',
  }
  const auth = 'Authorization: Bearer w-1'
  const slot = /http:[^ ]*\/lease\/tour-\d+/.exec(stdout)?.[0]
  expect(slot).toMatch(/^http:\/\/127\.0\.0\.1:18787\/lease\//)
  expect(stdout.trim().split('\n')).toEqual([
    `curl -sS ${api}/reserve -d {"subdomain":"acme"}`,
    `curl -sS -w \\n ${api}/commit -d ${JSON.stringify(commit)}`,
    'dig @127.0.0.1 -p 15300 +short acme.pool.test',
    `curl -sS -w \\n -X DELETE ${api}/release -d {"subdomain":"acme"}`,
    `curl -sS -w \\n -X PUT ${slot} -H ${auth} -H If-Match: 0 -d {"holder":"region-a","ttlSeconds":30}`,
    `curl -sS -w \\n -X PUT ${slot} -H ${auth} -H If-Match: 0 -d {"holder":"region-b"}`,
    `curl -sS -w \\n ${slot}?until=vacant -H ${auth} -H Prefer: wait=20`,
    `curl -sS ${deployments} -d ${JSON.stringify(deployment)}`,
    `curl -sSN -w \\n ${deployments}/d-1/logs`,
    'dig @127.0.0.1 -p 15300 +short globex.pool.test',
    `curl -sS -w \\n -X POST ${deployments}/d-1/destroy -H X-Deployment-Token: o-1`,
    `curl -sSN -w \\n ${deployments}/d-1/logs`,
    `curl -sS -o /dev/null -w %{http_code}\\n -X DELETE ${deployments}/d-1 -H X-Deployment-Token: o-1`,
    `curl -sS -X DELETE ${slot} -H ${auth} -H If-Match: 1 -H X-Holder: region-a`,
  ])
})

test('prints all addresses and files', () => {
  for (const value of [
    '18080',
    '18081',
    'http://127.0.0.1:18081/console#token=o-1',
    '15300',
    '15432',
    '18787',
    'w-1',
    '/data/lease-witness.log',
    '/data/operator-token',
    '/data/postgres.log',
  ]) {
    expect(text).toContain(value)
  }
})
