import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAllocationApi, startWitness } from '@pool/testing'
import { createCliFolder } from './cli.ts'
import { invalidInput, writeInputFiles } from './invalid-input.ts'
import { openShell } from './shell.ts'

const COLUMNS = 100
const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f tour'

/** Of the same length as the addresses of the services, so that the columns of a table stay. */
const SHOWN_API = 'http://127.0.0.1:18081'
const SHOWN_WITNESS = 'http://127.0.0.1:18787'

const toPage = (screens: string): string => `# Screens of poolctl

Every command in a terminal of ${COLUMNS} columns, and what it prints for invalid input. A program typed the lines in a shell
in tmux, against both services, and copied the screens: \`node scripts/write-screens.ts\` in \`packages/cli\`. Lines that the
terminal wraps are joined. See [poolctl](poolctl.md).
${screens}`

/** Runs every command once in a terminal, against both services. Resolves with the page that shows the screens. */
export const takeScreens = async (): Promise<string> => {
  await using api = await startAllocationApi({
    pools: ['pool.example'],
    env: {
      PDM_NAME_COOL_OFF: '1h',
      PDM_DNS_COMMIT_WAIT: '30s',
      // Names that do not resolve: keys are sent to no provider.
      OBJECT_STORAGE_DOMAIN: 'storage.invalid',
      PROVIDER_TOKEN_URLS: 'hetzner=https://api.invalid/v1/locations',
    },
  })
  await using witness = await startWitness()
  using home = createCliFolder()
  const write = (name: string, content: string) => writeFileSync(join(home.folder, name), content, { mode: 0o600 })
  write('operator-token', api.operatorToken)
  write('witness-token', witness.token)
  write('id.pub', SSH_KEY)
  write('keys.json', JSON.stringify({ accessKey: 'EXAMPLEACCESSKEY0000', secretKey: 'x'.repeat(40) }))
  await using shell = await openShell({ shell: 'bash', folder: home.folder, env: home.env, columns: COLUMNS })

  let screens = ''
  const toShown = (text: string): string =>
    text
      .replaceAll(api.operatorUrl, SHOWN_API)
      .replaceAll(witness.url, SHOWN_WITNESS)
      .replaceAll(`${home.folder}/`, '')
      // Terraform prints the paths of the modules.
      .replaceAll(/(?:\.\.\/)+\S*?infra\//g, 'infra/')
  const show = async (words: string, answers?: Readonly<Record<string, string>>): Promise<string> => {
    const line = `poolctl ${words.replaceAll('API', api.operatorUrl).replaceAll('WITNESS', witness.url)}`
    const { screen, exitCode } = await shell.run(line, answers)
    const end = exitCode === 0 ? '' : `[exit code ${exitCode}]\n`
    screens += `\n\`\`\`text\n${toShown(`$ ${line}\n${screen}`)}\n${end}\`\`\`\n`
    return screen
  }
  const section = (title: string) => {
    screens += `\n## ${title}\n`
  }

  section('Contexts')
  await show(
    'contexts set local --api API --api-token-file operator-token --witness WITNESS --witness-token-file witness-token',
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
  await show('names search ac --state active')
  await show('names describe acme.pool.example')
  await show('names diff acme.pool.example')
  await show('names update acme.pool.example --address 203.0.113.30 --dry-run')
  await show('names release acme.pool.example --dry-run')
  await show('names check acme.pool.example')
  await show('names release acme.pool.example', { 'to continue:': 'acme.pool.example' })
  await show('names reserved -o name | head -5')

  section('Zones')
  await show('zones list')
  await show('zones cool-off lift acme pool.example --dry-run')
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
    'deployments create --org-name Globex --org-email ops@globex.example --pool pool.example --subdomain globex --provider local --region local --ssh-public-key id.pub --follow',
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
  await show('credentials validate --region fsn1 --keys-file keys.json --timeout 10s')
  await show('credentials validate-token --provider hetzner --token-file witness-token --timeout 10s')

  section('Installation')
  await show('doctor')
  await show('export installation.ndjson')
  await show('import installation.ndjson --yes')
  await show('completion fish')

  section('Invalid input')
  writeInputFiles(home.folder)
  for (const [line, error] of invalidInput) {
    // A terminal would ask.
    const input = /no terminal|Confirm it/.test(error) ? ' </dev/null' : ''
    await show(`${line.replaceAll(' @', ' ')}${input}`)
  }
  return toPage(screens)
}

/** A page without what differs from run to run: times, ids, durations, and the output of Terraform. */
export const maskScreens = (page: string): string =>
  page
    .split('\n')
    .filter(line => !/^\S+Z (?:init|apply|destroy) /.test(line))
    .join('\n')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+[Z…]/g, '<time>')
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/\b\d+(?:\.\d+)?m?s\b/g, '<duration>')
    .replaceAll(/(?<=sha256:|under request )[0-9a-f]+/g, '<digits>')
    .replaceAll(/\b198\.1[89]\.\d+\.\d+\b/g, '<address>')
    .replaceAll(/(?<=^value: +)\S+/gm, '<value>')
    .replaceAll(/(?<=^log lines: +)\d+|\d+(?= lines\.$)/gm, '<count>')
    .replaceAll(/ {2,}/g, '  ')
