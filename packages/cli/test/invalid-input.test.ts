import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCliFolder, runPoolctl } from './support/cli.ts'

/** Writes the files that the command lines name. */
const writeInputFiles = (folder: string): void => {
  const write = (name: string, content: string, mode = 0o600) => writeFileSync(join(folder, name), content, { mode })
  write('text', 'text')
  write('list.json', '[1]')
  write('empty', '')
  write('key.pub', 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f key')
  for (const kind of ['OPENSSH ', 'RSA ', 'EC ', 'ENCRYPTED ', '']) {
    write(
      `${kind.trim().toLowerCase()}-key`,
      `-----BEGIN ${kind}PRIVATE KEY-----\nc2VjcmV0\n-----END ${kind}PRIVATE KEY-----\n`,
    )
  }
  write('putty.ppk', 'PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\nc2VjcmV0\n')
  write('private-input.json', '{"sshPublicKey":"-----BEGIN PRIVATE KEY-----"}')
  write('shared-keys.json', '{"accessKey":"a","secretKey":"s"}', 0o644)
  write('keys-without-secret.json', '{"accessKey":"a"}')
  write('shared-input.json', '{"objectStorageAccessKey":"a"}', 0o644)
  write('two-lines', 'token\ntoken')
}

const ID = '4f1c2a9e-0b7d-4c58-9a51-2f7d5f3b9c10'

/** A command line, where `@name` is a file below, and what the first line of the error says. */
const invalidInput: readonly (readonly [line: string, error: string])[] = [
  // The command line.
  ['nonsense', "unknown command 'nonsense'"],
  ['names', 'Usage: poolctl names'],
  ['names chek acme pool.test', "unknown command 'chek' (Did you mean check?)"],
  ['names check', "missing required argument 'NAME'"],
  ['names check acme pool.test extra', 'too many arguments'],
  ['names check acme pool.test --nonsense', "unknown option '--nonsense'"],
  ['names list pool.test --stat active', "unknown option '--stat'"],
  ['names list pool.test --state free', 'Allowed choices are reserved, active'],
  ['names search --dns done', 'Allowed choices are pending, published, failing'],
  ['names search --state free', 'Allowed choices are reserved, active, cooling-off, held'],
  ['names search --pool a/b', 'POOL "a/b" is not a domain name'],
  ['names list pool.test --output yaml', 'Allowed choices are table, json, ndjson, name'],
  ['names list pool.test --output', "option '-o, --output <format>' argument missing"],
  ['names commit acme pool.test', 'the target is missing; name it with --address'],
  ['names check acme pool.test --timeout soon', '--timeout "soon" is not a duration'],
  ['names check acme pool.test --timeout 0s', '--timeout must be from 100ms to 1h'],
  ['names check acme pool.test --timeout 30', '--timeout "30" is not a duration'],
  ['completion tcsh', 'SHELL must be one of bash, zsh, fish'],
  // Contexts.
  ['names check acme pool.test --context other', 'there is no context "other"; use one of test'],
  ['contexts set -bad --api http://x', "unknown option '-bad'"],
  ['contexts set a/b --api http://127.0.0.1:1', 'context "a/b" is not a valid name'],
  ['contexts set new', 'a context needs --api URL, --witness URL, or both'],
  ['contexts set new --api pool.example', '--api must be an http or https URL'],
  ['contexts set new --api ftp://pool.example', '--api must be an http or https URL'],
  ['contexts set new --api https://user:secret@pool.example', '--api must not have a user or a password'],
  ['contexts set new --api https://pool.example?x=1', '--api must not have a query'],
  [
    'contexts set new --api http://pool.example --api-token-file /t',
    '--api would send its token unencrypted to pool.example',
  ],
  ['contexts set new --api https://pool.example --api-token-file /t --api-token-command c', 'exclude each other'],
  ['contexts set new --api-token-file /t', '--api is required with a token for it'],
  ['contexts use other', 'there is no context "other"'],
  ['contexts remove other', 'there is no context "other"'],
  // Names.
  ['names check acme', 'NAME "acme" has no pool'],
  ['names check -- -acme pool.test', 'NAME "-acme": subdomain must be one label'],
  ['names check ac_me pool.test', 'NAME "ac_me": subdomain must be one label'],
  ['names check a.b pool.test', 'NAME "a.b": subdomain must be one label'],
  ['names check xn--abc pool.test', 'must not have "--" in positions 3 and 4'],
  ['names check acme pool_test', 'POOL "pool_test" is not a domain name'],
  ['names list http://pool.test', 'POOL "http://pool.test" is not a domain name'],
  ['names commit acme.pool.test --address 1.2.3', '--address must be a unicast IPv4 address'],
  ['names commit acme.pool.test --address 224.0.0.1', '--address must be a unicast IPv4 address'],
  ['names update acme.pool.test --address ::1', '--address must be a unicast IPv4 address'],
  ['names update acme.pool.test --ipv6 ::1', '--ipv6 must be a unicast IPv6 address'],
  ['names update acme.pool.test --address 203.0.113.10 --hostname lb.example.com', '--address and --hostname exclude'],
  ['names commit acme.pool.test --nameserver ns1.example.com', '--nameserver must be a list of 2 to 8'],
  ['names commit acme.pool.test --address 203.0.113.10', 'the token of acme.pool.test is not stored on this machine'],
  ['names commit acme.pool.test --address 203.0.113.10 --wait-timeout 1m', '--wait-timeout needs --wait'],
  ['names renew acme.pool.test --token-file @missing', 'does not exist'],
  ['names renew acme.pool.test --token-file @two-lines', 'does not contain one token'],
  ['names list pool.test --limit 0', '--limit must be a whole number of at least 1'],
  ['names list pool.test --limit ten', '--limit must be a whole number of at least 1'],
  ['names release acme.pool.test', 'Confirm it with --yes'],
  [
    'names release acme.pool.test --yes --deployment 0a',
    'the token of the deployment 0a is not stored on this machine',
  ],
  ['names wait acme.pool.test --wait-timeout 0s', '--wait-timeout must be from 1s'],
  // Zones and buckets.
  ['zones resume pool.test', "required option '--trust <side>' not specified"],
  ['zones resume pool.test --trust me', 'Allowed choices are database, zone'],
  ['zones resume pool.test --trust zone', 'Confirm it with --yes'],
  ['zones orphans remove pool.test acme', 'Confirm it with --yes'],
  ['zones orphans adopt pool.test a_b --yes', 'NAME "a_b": subdomain must be one label'],
  ['zones cool-off lift acme pool.test', 'Confirm it with --yes'],
  ['buckets lift Bucket', 'BUCKET "Bucket" is not a bucket name'],
  // Deployments.
  ['deployments get 1', 'DEPLOYMENT "1" is not an id'],
  [
    'deployments create',
    'the deployment needs --org-name, --org-email, --provider, --region, --ssh-public-key, --pool, --subdomain',
  ],
  ['deployments create -f @missing.json', 'does not exist'],
  ['deployments create -f @text', 'is not JSON'],
  ['deployments create -f @list.json', 'must be a JSON object'],
  ['deployments create -f @shared-input.json', 'is accessible to other users; run: chmod 600'],
  ['deployments create --fqdn a.example --subdomain a', '--fqdn and --subdomain exclude each other'],
  ['deployments create --ssh-public-key @missing', 'does not exist'],
  ...['openssh', 'rsa', 'ec', 'encrypted', ''].map(
    kind => [`deployments create --ssh-public-key @${kind}-key`, 'is a private key; name the public key'] as const,
  ),
  ['deployments create --ssh-public-key @putty.ppk', 'is a private key; name the public key'],
  ['deployments create -f @private-input.json', 'is a private key; name the public key'],
  [
    'deployments create --org-name A --org-email a@b.example --pool pool.test --subdomain a --provider hetzner --region fsn1 --storage-region fsn1 --ssh-public-key @key.pub',
    'there is no terminal to type the keys; name a file with --keys-file',
  ],
  ['deployments list --status done', 'Allowed choices are pending'],
  ['deployments history --deployment 1', 'DEPLOYMENT "1" is not an id'],
  ['deployments challenge ../x', '"../x" is not a domain name'],
  [`deployments unlock ${ID}`, 'Confirm it with --yes'],
  // Leases.
  ['leases acquire slot --holdr a', "unknown option '--holdr' (Did you mean --holder?)"],
  ['zones resume pool.test --trsut zone', "unknown option '--trsut'"],
  ['leases acquire slot', "required option '--holder <name>' not specified"],
  ['leases acquire slot --holder é', '--holder must be 1 to 253 printable ASCII characters'],
  ['leases acquire slot --holder a --ttl 500ms', '--ttl must be from 1s to 24h'],
  ['leases acquire slot --holder a --generation -1', '--generation must be a whole number'],
  ['leases renew a a --holder h', 'SLOT is repeated'],
  ['leases renew a b --holder h --generation 1', '--generation and --value are for one slot'],
  ['leases renew a b --holder h --value x', '--generation and --value are for one slot'],
  [`leases acquire slot --holder a --value ${'ä'.repeat(513)}`, '--value must be at most 1,024 bytes'],
  ['leases list slot --prefix s', '--prefix and --limit are not for named slots'],
  ['leases elect slot', "missing required argument 'COMMAND'"],
  [
    'leases elect slot --lease-duration 5s --grace 5s -- true',
    '--lease-duration 5s leaves too little time before --grace',
  ],
  ['leases elect slot --grace soon -- true', '--grace "soon" is not a duration'],
  // Credentials, export, import.
  ['credentials validate --region moon1', 'Allowed choices are fsn1, nbg1, hel1'],
  ['credentials validate --region fsn1', 'there is no terminal to type the keys'],
  ['credentials validate --region fsn1 --keys-file @shared-keys.json', 'is accessible to other users; run: chmod 600'],
  [
    'credentials validate --region fsn1 --keys-file @keys-without-secret.json',
    'must be a JSON object with the texts accessKey and secretKey',
  ],
  ['credentials validate --region fsn1 --secret-key x', "unknown option '--secret-key'"],
  ['credentials validate-token --provider hetzner', 'there is no terminal to type the token'],
  ['export @text', 'exists; name a new file'],
  ['import @missing', 'does not exist'],
  ['import @empty', 'is empty'],
  ['import @text --from pool.test', '--from and --to belong to each other'],
  ['import @text', 'Confirm it with --yes'],
]

const home = createCliFolder()
const file = (name: string): string => join(home.folder, name)

beforeAll(async () => {
  const set = ['contexts', 'set', 'test', '--api', 'http://127.0.0.1:1', '--witness', 'http://127.0.0.1:1']
  await runPoolctl(set, home)
  writeInputFiles(home.folder)
})
afterAll(() => home[Symbol.dispose]())

describe(`${invalidInput.length} kinds of invalid input`, () => {
  test.each(invalidInput)('poolctl %s', async (line, error) => {
    const args = line.split(' ').map(word => (word.startsWith('@') ? file(word.slice(1)) : word))
    const { exitCode, stdout, stderr } = await runPoolctl(args, home)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    const [first = '', second = ''] = stderr.split('\n')
    expect(first).toContain(error)
    if (!error.startsWith('Usage')) {
      expect(first).toMatch(/^error: /)
      expect(second).toMatch(/^Run "poolctl .*--help" for the usage\.$/)
    }
  })

  test('no two have the same line', () => {
    expect(new Set(invalidInput.map(([line]) => line)).size).toBe(invalidInput.length)
    expect(invalidInput.length).toBeGreaterThanOrEqual(60)
  })
})

test.each(['no-such-command', './no-such-command', '/no/such/command'])(
  'elect of %s is 127 before it waits for the lease',
  async command => {
    const env = { ...home.env, PATH: process.env.PATH }
    const { exitCode, stderr } = await runPoolctl(['leases', 'elect', 'slot', '--', command], { env })
    expect({ exitCode, stderr }).toEqual({
      exitCode: 127,
      stderr: `error: the command ${command} does not exist; check its path\n`,
    })
  },
)

test.each(['names list pool.test', 'leases list'])('without a context, %s says how to create one', async line => {
  using other = createCliFolder()
  expect(await runPoolctl(line.split(' '), other)).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('run: poolctl contexts set NAME --api URL'),
  })
})

test('a context without the service says how to add it', async () => {
  using other = createCliFolder()
  await runPoolctl(['contexts', 'set', 'a', '--api', 'http://127.0.0.1:1'], other)
  expect(await runPoolctl(['leases', 'list'], other)).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('run: poolctl contexts set a --witness URL'),
  })
})
