import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { startAllocationApi, startWitness } from '@pool/testing'
import { createCliFolder } from '../test/support/cli.ts'
import { openTerminal } from '../test/support/terminal.ts'

// Runs every command once in a terminal of 100 columns, against both services, and writes what the screen shows into
// docs/clients/poolctl-screens.md.

const WIDTH = 100
const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f tour'

await using api = await startAllocationApi({ pools: ['pool.example'], env: { PDM_NAME_COOL_OFF: '1h' } })
await using witness = await startWitness()
using home = createCliFolder()
const write = (name: string, content: string) => writeFileSync(join(home.folder, name), content, { mode: 0o600 })
write('operator-token', api.operatorToken)
write('witness-token', witness.token)
write('id.pub', SSH_KEY)
write('keys.json', JSON.stringify({ accessKey: 'EXAMPLEACCESSKEY0000', secretKey: 'x'.repeat(40) }))

let screens = ''
/** The text that a real terminal shows at the end: progress lines are overwritten, and the rest stays. */
const toScreen = (output: string): string =>
  output
    .split('\r\n')
    .map(line => stripVTControlCharacters(line.split('\r\u001b[K').at(-1) ?? '').trimEnd())
    .join('\n')
    .trim()
    .replaceAll(api.operatorUrl, 'http://127.0.0.1:8081')
    .replaceAll(witness.url, 'http://127.0.0.1:8787')
    .replaceAll(`${home.folder}/`, '')
    // Terraform prints the paths of the modules.
    .replaceAll(/(?:\.\.\/)+\S*?infra\//g, 'infra/')

const show = async (line: string, keys = ''): Promise<string> => {
  const words = line
    .replaceAll('%', `${home.folder}/`)
    .replaceAll('API', api.operatorUrl)
    .replaceAll('WITNESS', witness.url)
    .split(' ')
  const terminal = openTerminal(words, home.env, WIDTH)
  if (keys !== '') {
    await terminal.waitFor('continue: ')
    terminal.type(keys)
  }
  const exitCode = await terminal.exitCode
  const shown = line
    .replaceAll('%', '')
    .replaceAll('API', 'http://127.0.0.1:8081')
    .replaceAll('WITNESS', 'http://127.0.0.1:8787')
  const screen = toScreen(terminal.output())
  screens += `\n\`\`\`text\n$ poolctl ${shown}\n${screen}\n${exitCode === 0 ? '' : `[exit code ${exitCode}]\n`}\`\`\`\n`
  return screen
}
const section = (title: string) => {
  screens += `\n## ${title}\n`
}

section('Contexts')
await show(
  'contexts set local --api API --api-token-file %operator-token --witness WITNESS --witness-token-file %witness-token',
)
await show('contexts list')
await show('contexts show')
await show('contexts set other --api https://pool.example')
await show('contexts use other')
await show('contexts use local')
await show('contexts remove other')

section('Names')
await show('names check acme pool.example')
await show('names reserve acme pool.example --created-by ci-1234')
await show('names renew acme.pool.example')
await show('names commit acme.pool.example --address 203.0.113.10 --wait')
await show('names get acme.pool.example')
await show('names wait acme.pool.example')
await show('names update acme.pool.example --address 203.0.113.20')
await show('names list pool.example')
await show('names history pool.example acme --limit 3')
await show('names check acme.pool.example')
await show('names release acme.pool.example', 'acme.pool.example\r')
await show('names reserved -o name --quiet')

section('Zones')
await show('zones cool-off lift acme pool.example --yes')
await show('zones diff pool.example')
await show('zones converge pool.example')
await show('zones republish pool.example --dry-run')
await show('zones resume pool.example --trust database --dry-run')
await show('zones orphans list pool.example')
await show('zones orphans adopt pool.example --dry-run')
await show('zones orphans remove pool.example --dry-run')
await show('zones former-records pool.example')

section('Deployments and buckets')
const created = await show(
  'deployments create --org-name Globex --org-email ops@globex.example --pool pool.example --subdomain globex --provider local --region local --ssh-public-key %id.pub --follow',
)
const id = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(created)?.[0] ?? '4f1c2a9e-0b7d-4c58-9a51-2f7d5f3b9c10'
await show('deployments list')
await show(`deployments get ${id}`)
await show(`deployments logs ${id}`)
await show(`deployments plan ${id}`)
await show(`deployments apply ${id} --follow`)
await show(`deployments cancel ${id} --yes`)
await show(`deployments unlock ${id} --yes`)
await show(`deployments delete ${id} --yes`)
await show(`deployments destroy ${id} --yes --follow`)
await show(`deployments abandon ${id} --yes`)
await show('deployments history --limit 3')
await show('deployments challenge cloud.acme.example')
await show('buckets list')
await show('buckets lift catalyst-acme-pool-example --yes')

section('Leases')
await show('leases acquire region-pair/primary --holder region-a --ttl 1m')
await show('leases acquire region-pair/primary --holder region-b')
await show('leases get region-pair/primary')
await show('leases renew region-pair/primary --holder region-a')
await show('leases list region-pair/primary region-pair/backup')
await show('leases release region-pair/primary --holder region-a')
await show('leases watch region-pair/primary --until-vacant')
await show('leases history region-pair/primary')
await show('leases elect nightly-backup --holder region-a -- printenv POOL_LEASE_SLOT POOL_FENCING_TOKEN')

section('Credentials')
await show('credentials validate --region fsn1 --keys-file %keys.json --timeout 2s')
await show('credentials validate-token --provider hetzner --token-file %witness-token --timeout 2s')

section('Installation')
await show('doctor')
await show('export %installation.ndjson')
await show('import %installation.ndjson --yes')
await show('completion fish')

const page = `# Screens of poolctl

Every command in a terminal of ${WIDTH} columns, as \`packages/cli/scripts/write-screens.ts\` ran them. See
[poolctl](poolctl.md).
${screens}`
writeFileSync(fileURLToPath(new URL('../../../docs/clients/poolctl-screens.md', import.meta.url)), page)
