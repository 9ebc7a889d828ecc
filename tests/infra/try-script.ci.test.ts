import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@pool/dev/ports'
import { bundle } from 'lease-witness/local/bundle.ts'
import { convertV4MiniflareOptions, Miniflare, NoOpLog } from 'miniflare'
import { expect, onTestFinished, test } from 'vitest'
import { Account, type Upload } from './support/account.ts'
import { repository } from './support/module-fixture.ts'
import { binary, type CommandResult, isolatedEnv, withTerraform } from './support/terraform.ts'
import { accountId, startWitnessProvider } from './support/witness-fixture.ts'

/** Runs each upload in workerd with its bindings, at one address, and keeps the data, as a deployment does. */
async function createDeployer(directory: string) {
  const port = await freePort()
  let miniflare: Miniflare | undefined
  onTestFinished(() => miniflare?.dispose())
  const toOptions = ({ content, bindings }: Upload) => {
    const select = (types: readonly string[], value: string) =>
      bindings
        .filter(({ type }) => types.includes(String(type)))
        .map(binding => [String(binding.name), String(binding[value])] as const)
    return convertV4MiniflareOptions({
      modules: [{ type: 'ESModule', path: 'index.mjs', contents: content }],
      compatibilityDate: '2026-05-01',
      compatibilityFlags: ['enable_request_signal'],
      bindings: Object.fromEntries(select(['plain_text', 'secret_text'], 'text')),
      kvNamespaces: Object.fromEntries(select(['kv_namespace'], 'namespace_id')),
      durableObjects: Object.fromEntries(
        select(['durable_object_namespace'], 'class_name').map(([name, className]) => [
          name,
          { className, useSQLite: true },
        ]),
      ),
      resourcePersistencePath: join(directory, 'data'),
      host: '127.0.0.1',
      port,
      cf: false,
      log: new NoOpLog(),
      handleStructuredLogs: () => {},
    })
  }
  return {
    url: `http://127.0.0.1:${port}`,
    deploy: async (_script: string, upload: Upload) => {
      if (miniflare) await miniflare.setOptions(toOptions(upload))
      else miniflare = new Miniflare(toOptions(upload))
      await miniflare.ready
    },
  }
}

async function createTrial(script: string) {
  const directory = mkdtempSync(join(tmpdir(), 'try-script-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const { url, deploy } = await createDeployer(directory)
  const account = new Account({ deploy })
  const { environment, api, stop } = await startWitnessProvider(account, directory, new Map([[accountId, account]]))
  onTestFinished(() => {
    stop()
    expect(api?.unknown ?? []).toEqual([])
  })
  const scriptFile = join(directory, 'built.js')
  writeFileSync(scriptFile, script)
  const trial = join(directory, 'trial')
  const { env } = isolatedEnv({
    HOME: directory,
    CLOUDFLARE_API_TOKEN: 'unused',
    ...environment,
    ...(binary && { TERRAFORM: binary }),
    CLOUDFLARE_ACCOUNT_ID: accountId,
    WORKERS_DEV_SUBDOMAIN: 'acme',
    SCRIPT_FILE: scriptFile,
    TRY_DIR: trial,
    TRY_TIMEOUT: '60',
    WITNESS_URL: url,
  })
  const run = (...args: string[]): Promise<CommandResult> =>
    new Promise(resolve => {
      execFile(join(repository, 'infra/lease-witness/try.sh'), args, { env }, (reason, stdout, stderr) => {
        resolve({ code: reason ? Number(reason.code) : 0, output: stdout + stderr })
      })
    })
  return { account, trial, env, run }
}

const witness = fileURLToPath(new URL('../../apps/lease-witness/src/index.ts', import.meta.url))

withTerraform('the script that tries the lease witness on an account', () => {
  test('applies, tests the deployed worker, and removes everything', async () => {
    const { account, trial, run } = await createTrial(await bundle(witness))
    const { code, output } = await run()
    expect(code, output).toBe(0)
    for (const line of [
      '4 added, 0 changed, 0 destroyed',
      '0 added, 1 changed, 0 destroyed',
      'the plan is empty',
      'a slot outside the policy: 403',
      '1 writer acquired the lease',
      'of the release: 200',
      'the old token after its removal: 401',
      'Destroy complete! Resources: 4 destroyed',
      'All steps succeeded',
    ]) {
      expect(output).toContain(line)
    }
    expect([account.scripts.size, account.namespaces.size]).toEqual([0, 0])
    expect(existsSync(trial)).toBe(false)
  })

  test('fails if the worker grants a lease twice, and then still removes it', async () => {
    const { account, run } = await createTrial(`
      import { DurableObject } from 'cloudflare:workers'
      export class LeaseObject extends DurableObject {}
      export default {
        fetch(request) {
          const { pathname } = new URL(request.url)
          if (pathname === '/healthz' || request.method === 'PUT') return new Response(null, { status: 200 })
          if (!request.headers.has('authorization')) return new Response(null, { status: 401 })
          return new Response(null, { status: pathname === '/lease/other' ? 403 : 404 })
        },
      }`)
    const { code, output } = await run()
    expect(code, output).toBe(1)
    expect(output).toContain('FAILED: 32 writers acquired the lease instead of 1')
    expect(output).toContain('try.sh down removes it')
    expect(account.scripts.size).toBe(1)
    const removal = await run('down')
    expect(removal.code, removal.output).toBe(0)
    expect(account.scripts.size).toBe(0)
  })

  test('names the variables that are missing', async () => {
    const { env, run } = await createTrial('')
    delete env.CLOUDFLARE_ACCOUNT_ID
    const { code, output } = await run()
    expect(code).toBe(1)
    expect(output).toContain('FAILED: CLOUDFLARE_ACCOUNT_ID is not set')
  })
})
