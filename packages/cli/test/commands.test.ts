import { operations } from '@pool/contract'
import { leaseOperations } from '@pool/contract/lease-operations'
import { describe, expect, test } from 'vitest'
import { type CommandSpec, createProgram, type GroupSpec, isGroup } from '../src/command.ts'
import { commands } from '../src/commands/index.ts'
import { VERSION } from '../src/run.ts'
import { runPoolctl } from './support/cli.ts'

const list = (specs: readonly (CommandSpec | GroupSpec)[], path: readonly string[] = []): [string, CommandSpec][] =>
  specs.flatMap(spec =>
    isGroup(spec)
      ? list(spec.commands, [...path, spec.name])
      : [[[...path, spec.name].join(' '), spec] as [string, CommandSpec]],
  )

const all = list(commands)

/** Operations that people do not call with poolctl, and why. */
const WITHOUT_COMMAND: Readonly<Record<string, string>> = {
  getMetrics: 'Prometheus reads it',
  getOpenApiDocument: 'generators read it',
  getApiReference: 'a web page',
  getApiReferenceAsset: 'a part of the web page',
  startSession: 'a browser has a session; poolctl sends its token with every request',
  getSession: 'of a browser',
  endSession: 'of a browser',
  checkDomain: 'the wizard of the console reads it; `deployments create` reports the same',
  readOverview: 'series for the plots of the console; Prometheus has the metrics',
  followChanges: 'the console reads it to show changes at once',
  listWitnessLeases: '`leases list` asks the witness itself',
  readWitnessHistory: '`leases history` asks the witness itself',
  releaseWitnessLease: '`leases release` asks the witness itself',
  drainLeases: 'once in the life of an installation, on Cloudflare only; docs/operate/move.md has the calls',
  presentChallenge: 'lego and the clients that embed it call it',
  cleanUpChallenge: 'the same',
  updateAcmeDns: 'clients of acme-dns call it',
  registerAcmeDns: 'the same',
  getAcmeDnsHealth: 'the same',
  getHealth: 'of the witness; a probe reads it. That of the API is in `doctor`',
  getHealthMethods: 'a preflight request',
  getLeaseMethods: 'a preflight request',
  getLeaseHistoryMethods: 'a preflight request',
  getLeaseListMethods: 'a preflight request',
  getDrainMethods: 'a preflight request',
  getRenewalMethods: 'a preflight request',
}

describe('the commands and the operations of the contract', () => {
  const covered = new Set(all.flatMap(([, spec]) => spec.operations ?? []))
  const known = [...Object.values(operations), ...Object.values(leaseOperations)]

  test.each(known.map(({ id }) => id))('%s has a command, or a reason to have none', id => {
    expect(covered.has(id) || id in WITHOUT_COMMAND).toBe(true)
  })

  test('the commands name operations that exist, and so do the exceptions', () => {
    const ids = new Set<string>(known.map(({ id }) => id))
    expect([...covered, ...Object.keys(WITHOUT_COMMAND)].filter(id => !ids.has(id))).toEqual([])
  })
})

/** The words of an example, as a shell without expansions would pass them. */
const toWords = (example: string): string[] =>
  Array.from(
    example.split(/ (?:&&|>) /)[0]?.matchAll(/'([^']*)'|(\S+)/g) ?? [],
    ([, quoted, word]) => quoted ?? word ?? '',
  )

describe.each(all)('poolctl %s', (path, spec) => {
  test('its examples are valid command lines of it', async () => {
    expect(spec.examples.length).toBeGreaterThan(0)
    for (const example of spec.examples) {
      let called: CommandSpec | undefined
      const program = createProgram({
        specs: commands,
        version: VERSION,
        execute: async executed => {
          called = executed
        },
        writeOut: () => {},
        writeErr: () => {},
        helpWidth: 80,
      })
      await program.parseAsync(toWords(example), { from: 'user' })
      expect(called, example).toBe(spec)
    }
  })

  test('its help has the usage, the examples and the flags of every command', async () => {
    const { exitCode, stdout, stderr } = await runPoolctl([...path.split(' '), '--help'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain(`Usage: poolctl ${path}`)
    expect(stdout).toContain('Examples:')
    expect(stdout).toContain('--output <format>')
  })

  test('no argument or flag is a secret', () => {
    const names = [...(spec.arguments ?? []).map(({ name }) => name), ...(spec.flags ?? []).map(({ flags }) => flags)]
    // A file or a command that has the secret.
    const suspicious = names.filter(name => /token|key|secret|password/i.test(name) && !/file|command/i.test(name))
    expect(suspicious).toEqual([])
  })
})
