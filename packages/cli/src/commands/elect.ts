import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { delimiter, join } from 'node:path'
import { createIdentity, type LeadershipContext, LeaseElector } from '@pool/client'
import type { CommandSpec, Flags } from '../command.ts'
import { type CommandEnd, type LeasedCommand, startLeasedCommand } from '../elect/command.ts'
import { addMs, readClocks, type StopTimes } from '../elect/deadline.ts'
import { ELECT_EXIT, toSignalExit, UsageError } from '../exit-codes.ts'
import { describeFailure } from '../failures.ts'
import type { Session } from '../session.ts'
import { formatDuration, parseDuration, parseHolder, parseLeaseValue, parseSlot } from '../values.ts'
import { toText } from './flags.ts'

/** From SIGKILL to the end of the lease, for the delivery of the signal and the exit of the command. */
const MARGIN_MS = 1_000
/** How often the process that runs the command learns the end of the lease. */
const REPORT_MS = 200

interface Timing extends StopTimes {
  readonly leaseDuration: number
  readonly renewDeadline: number
  readonly retryPeriod: number
}

const LEASE_LIMITS = { min: 4_000, max: 86_400_000 } as const
const GRACE_LIMITS = { min: 0, max: 3_600_000 } as const

/**
 * The durations of the election. The command has the time from the renew deadline to the end of the lease to stop: its grace
 * time and the margin.
 */
export const toElectTiming = (leaseDuration: number, graceMs: number): Timing => {
  const renewDeadline = leaseDuration - graceMs - MARGIN_MS
  if (renewDeadline < leaseDuration / 3) {
    const minimum = formatDuration(Math.ceil(((graceMs + MARGIN_MS) * 3) / 2))
    throw new UsageError(
      `--lease-duration ${formatDuration(leaseDuration)} leaves too little time before --grace; use at least ${minimum}, or a shorter --grace.`,
    )
  }
  return { leaseDuration, graceMs, marginMs: MARGIN_MS, renewDeadline, retryPeriod: renewDeadline / 4 }
}

const toTiming = (flags: Flags): Timing =>
  toElectTiming(
    parseDuration(toText(flags.leaseDuration) ?? '30s', '--lease-duration', LEASE_LIMITS),
    parseDuration(toText(flags.grace) ?? '5s', '--grace', GRACE_LIMITS),
  )

/** What the command knows of its tenure. No token of the witness is in its environment. */
const toEnvironment = (
  env: NodeJS.ProcessEnv,
  { slot, identity, fencingToken }: LeadershipContext,
): NodeJS.ProcessEnv => ({
  ...env,
  POOL_LEASE_SLOT: slot,
  POOL_LEASE_HOLDER: identity,
  POOL_FENCING_TOKEN: String(fencingToken),
})

interface Election {
  readonly session: Session
  readonly slot: string
  readonly identity: string
  readonly value: string | undefined
  readonly timing: Timing
  readonly command: string
  readonly args: readonly string[]
}

/** Runs the command during one tenure. Resolves when the command has ended. */
const runTenure = async (
  { session, timing, command, args }: Election,
  context: LeadershipContext,
): Promise<CommandEnd> => {
  const { host, output } = session
  // The elector stops at the renew deadline; the lease ends later.
  const afterDeadline = timing.leaseDuration - timing.renewDeadline
  const toEnd = () => addMs(readClocks(), context.remainingMs() + afterDeadline)
  output.note(`leading ${context.slot} as ${context.identity}, fencing token ${context.fencingToken}`)
  const leased: LeasedCommand = startLeasedCommand({
    entry: host.entry,
    command,
    args,
    env: toEnvironment(host.env, context),
    end: toEnd(),
    ...timing,
  })
  const stop = () => leased.stop()
  const timer = setInterval(() => {
    if (context.isLeader()) leased.extend(toEnd())
  }, REPORT_MS)
  context.signal.addEventListener('abort', stop, { once: true })
  if (context.signal.aborted) stop()
  try {
    return await leased.ended
  } finally {
    clearInterval(timer)
    context.signal.removeEventListener('abort', stop)
  }
}

const isInstalled = (command: string, path: string | undefined): boolean => {
  if (command.includes('/')) return existsSync(command)
  return path === undefined || path.split(delimiter).some(folder => existsSync(join(folder, command)))
}

const elect = async (election: Election): Promise<number> => {
  const { session, slot, identity, value, timing } = election
  const { host, output, progress } = session
  const leases = await session.witness()
  const { name: context } = await session.context()
  const stopped = new AbortController()
  const interrupt = () => stopped.abort()
  host.interrupted.addEventListener('abort', interrupt, { once: true })
  let tenure: Promise<CommandEnd> | undefined
  let isLost = false
  let lastReason = ''
  progress.update(`waiting for ${slot}`)
  const elector = new LeaseElector({
    leases,
    slot,
    identity,
    value,
    leaseDuration: timing.leaseDuration,
    renewDeadline: timing.renewDeadline,
    retryPeriod: timing.retryPeriod,
    callbacks: {
      async onStartedLeading(context) {
        progress.stop()
        tenure = runTenure(election, context)
        await tenure
        // The lease is released, since the command has ended.
        stopped.abort()
      },
      onStoppedLeading(reason) {
        isLost = reason !== 'cancelled'
        // The next tenure would need a new command.
        stopped.abort()
      },
      onNewLeader(leader) {
        if (leader !== identity && leader !== '') progress.update(`waiting for ${slot}, which ${leader} holds`)
      },
    },
    onError: error => {
      const { text } = describeFailure(error, host.interrupted, context)
      // The lines after the first can differ each time.
      const [reason = ''] = text.split('\n')
      if (reason !== lastReason || session.globals.verbose) progress.print(text)
      lastReason = reason
    },
  })
  try {
    await elector.run(stopped.signal)
  } finally {
    host.interrupted.removeEventListener('abort', interrupt)
    progress.stop()
  }
  // After the end of the lease, the elector does not wait for the command.
  const end = await tenure
  if (end === undefined) return toSignalExit(String(host.interrupted.reason))
  if (end.kind === 'not-started') {
    host.stderr.write(`error: the command cannot be started (${end.reason}); check its path and its permissions\n`)
    return end.exitCode
  }
  if (isLost || end.isLeaseOver) {
    output.note(`the lease ${slot} could not be renewed in time; the command was stopped`)
    return ELECT_EXIT.leaseLost
  }
  return end.exitCode
}

export const electCommand: CommandSpec = {
  name: 'elect',
  summary: 'Run a command while you hold a lease, and stop it before the lease ends',
  description: `Waits for the lease, runs the command, and renews the lease until the command ends; then the lease is released.

If the lease cannot be renewed, the command and the processes of its process group get SIGTERM, and SIGKILL after --grace, ${formatDuration(MARGIN_MS)} before the lease ends at the latest. The same happens if poolctl is stopped, frozen or killed. Ctrl-C stops the command in the same order, then the lease is released.

The command has POOL_LEASE_SLOT, POOL_LEASE_HOLDER and POOL_FENCING_TOKEN in its environment. Send the fencing token with every write, and let the resource reject a lower one: no timeout protects a write that is delayed on its way. The command runs in a session of its own, without the terminal's Ctrl-C. A process that leaves its process group, such as a daemon, is not stopped: it can run on after the lease.`,
  arguments: [
    { name: 'SLOT', description: 'the name of the lease' },
    { name: 'COMMAND...', description: 'after --: the command and its arguments' },
  ],
  flags: [
    {
      flags: '--holder <name>',
      description: 'the holder, unique to one process: the host name and random digits by default',
    },
    { flags: '--value <text>', description: 'what readers of the lease see while you lead, such as an address' },
    { flags: '--lease-duration <duration>', description: 'how long the lease lasts without a renewal: 30s by default' },
    { flags: '--grace <duration>', description: 'time of the command between SIGTERM and SIGKILL: 5s by default' },
  ],
  examples: [
    'leases elect region-pair/primary -- ./controller --region a',
    'leases elect nightly-backup --lease-duration 1m --grace 20s -- ./backup.sh',
  ],
  operations: ['readLease', 'writeLease', 'releaseLease'],
  exitCodes: [
    'The exit code of the command; 128 + N if signal N ended it.',
    `${ELECT_EXIT.leaseLost}  the lease was lost, so the command was stopped`,
    `${ELECT_EXIT.failed}  the command could not be supervised`,
    `${ELECT_EXIT.cannotExecute}  the command cannot be executed`,
    `${ELECT_EXIT.notFound}  the command was not found`,
    '130, 143  interrupted before it led',
  ],
  async run(session, { args, flags }) {
    const [command = '', ...rest] = Array.isArray(args[1]) ? args[1].map(String) : []
    if (command === '') throw new UsageError('COMMAND must not be empty; write it after --.')
    // Before the lease is acquired: no other candidate has to wait for a command that cannot run.
    if (!isInstalled(command, session.host.env.PATH)) {
      session.host.stderr.write(`error: the command ${command} does not exist; check its path\n`)
      return ELECT_EXIT.notFound
    }
    const holder = toText(flags.holder)
    return elect({
      session,
      slot: parseSlot(String(args[0])),
      identity: holder === undefined ? createIdentity(hostname()) : parseHolder(holder),
      value: parseLeaseValue(toText(flags.value)),
      timing: toTiming(flags),
      command,
      args: rest,
    })
  },
}
