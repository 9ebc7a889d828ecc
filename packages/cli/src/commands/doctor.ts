import { ClientError } from '@pool/client'
import type { Probe } from '@pool/contract'
import type { CommandSpec } from '../command.ts'
import { readContexts, selectContext, toContextsPath } from '../contexts.ts'
import { CommandError, EXIT } from '../exit-codes.ts'
import { describeFailure, isOtherListener } from '../failures.ts'
import type { Session } from '../session.ts'
import type { Column } from '../table.ts'
import { toStateColour } from '../text.ts'

interface Finding {
  readonly check: string
  readonly state: 'good' | 'bad' | 'not checked'
  readonly text: string
}

const columns: readonly Column<Finding>[] = [
  { header: 'STATE', value: ({ state }) => state, colour: ({ state }) => toStateColour(state) },
  { header: 'CHECK', value: ({ check }) => check },
  { header: 'RESULT', value: ({ text }) => text },
]

/** Milliseconds for one check, so that an address that does not respond does not delay the report. */
const CHECK_TIMEOUT_MS = 10_000

type Check = readonly [name: string, run: () => Promise<string>]

/** A check that throws is a problem, with the text that the command itself would have printed. */
const runCheck = async (session: Session, context: string, [check, run]: Check): Promise<Finding> => {
  try {
    return { check, state: 'good', text: await run() }
  } catch (error) {
    session.host.interrupted.throwIfAborted()
    if (!(error instanceof ClientError || error instanceof CommandError)) throw error
    const text = describeFailure(error, session.host.interrupted, context).text
    return {
      check,
      state: isOtherListener(error) ? 'not checked' : 'bad',
      text: text
        .replace(/^error: /, '')
        .trim()
        .replaceAll(/\n\s*/g, '; '),
    }
  }
}

const NOT_READY: Readonly<Record<Exclude<Probe['status'], 'ok'>, string>> = {
  starting: 'it accepts no requests: it is starting, or waits for its database; read its log',
  draining: 'it accepts no requests: it stops',
  unhealthy: 'it accepts no requests: its database accepts no writes; check Postgres, and read the log of the service',
}

const apiChecks = (session: Session): readonly Check[] => {
  const options = { ...session.reading, deadlineMs: CHECK_TIMEOUT_MS }
  return [
    [
      'api',
      async () => {
        const { status, managedDomains } = await (await session.api()).getHealth(options)
        if (status !== 'ok')
          throw new CommandError('the service responds, but its database does not; check Postgres', EXIT.negative)
        return `the service and its database respond; pools: ${managedDomains.join(', ') || 'none'}`
      },
    ],
    ['api process', async () => `alive: ${(await (await session.api()).getLiveness(options)).status}`],
    [
      'api readiness',
      async () => {
        const { status } = await (await session.api()).getReadiness(options)
        if (status !== 'ok') throw new CommandError(NOT_READY[status], EXIT.negative)
        return 'it accepts requests'
      },
    ],
    [
      'api operator',
      async () => {
        await (await session.api()).listBucketClaims({ limit: 1 }, options)
        return 'this is the operator listener, and it accepts the token'
      },
    ],
  ]
}

/** Compares each zone with its desired records. Only the operator listener can. */
const checkZones = async (session: Session, context: string): Promise<readonly Finding[]> => {
  const api = await session.api()
  const { managedDomains } = await api.getHealth({ ...session.reading, deadlineMs: CHECK_TIMEOUT_MS })
  const checks = managedDomains.map(
    (domain): Check => [
      `zone ${domain}`,
      async () => {
        const { changeCount, conflictCount, orphanCount, stopped } = await api.convergeZone(
          { domain, dryRun: true },
          session.reading,
        )
        if (stopped)
          throw new CommandError(
            `nothing is written to it (${stopped}); run: poolctl zones resume ${domain}`,
            EXIT.negative,
          )
        const count = changeCount + conflictCount + orphanCount
        if (count > 0) throw new CommandError(`${count} differences; run: poolctl zones diff ${domain}`, EXIT.negative)
        return 'it has its desired records'
      },
    ],
  )
  const findings: Finding[] = []
  for (const check of checks) findings.push(await runCheck(session, context, check))
  return findings
}

const witnessCheck = (session: Session): Check => [
  'witness',
  async () => {
    const options = { ...session.reading, deadlineMs: CHECK_TIMEOUT_MS }
    const { leases } = await (await session.witness()).list({ limit: 1 }, options)
    return `it responds and accepts the token; ${leases.length === 0 ? 'no leases' : 'it has leases'}`
  },
]

export const doctorCommand: CommandSpec = {
  name: 'doctor',
  summary: 'Check the context, the connections, the tokens and the zones',
  description:
    'It changes nothing. The checks of a server, such as its database and Terraform, are in the doctor of the service.',
  examples: ['doctor', 'doctor --context prod -o json'],
  operations: ['getHealth', 'getLiveness', 'getReadiness', 'listBucketClaims', 'convergeZone'],
  exitCodes: ['0  no problem found', '1  at least one problem'],
  async run(session) {
    const { name, context } = selectContext(
      await readContexts(toContextsPath(session.host.env)),
      session.globals.context,
    )
    const findings: Finding[] = [{ check: 'context', state: 'good', text: `${name}; only you can read its file` }]
    const skip = (check: string) =>
      findings.push({ check, state: 'not checked', text: `the context has no address of it` })
    if (context.api) {
      for (const check of apiChecks(session)) {
        session.progress.update(`checking ${check[0]}`)
        findings.push(await runCheck(session, name, check))
      }
      if (findings.every(({ state }) => state === 'good')) {
        session.progress.update('comparing the zones')
        findings.push(...(await checkZones(session, name)))
      } else {
        const isUnavailable = findings.some(({ state }) => state === 'bad')
        const text = isUnavailable ? 'first correct what is bad' : 'they need the operator listener'
        findings.push({ check: 'zones', state: 'not checked', text })
      }
    } else skip('api')
    if (context.witness) findings.push(await runCheck(session, name, witnessCheck(session)))
    else skip('witness')
    session.progress.stop()
    const problems = findings.filter(({ state }) => state === 'bad').length
    await session.output.report({ problems, findings }, findings, {
      key: 'findings',
      columns,
      toName: ({ check }) => check,
      empty: '',
    })
    session.output.note(problems === 0 ? 'No problem found.' : `${problems} problem${problems === 1 ? '' : 's'} found.`)
    return problems === 0 ? EXIT.done : EXIT.negative
  },
}
