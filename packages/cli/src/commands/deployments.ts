import type { Params } from '@pool/client'
import { type Deployment, type DeploymentEvent, type DeploymentHistoryEntry, deploymentStatuses } from '@pool/contract'
import type { ArgumentSpec, Arguments, CommandSpec, FlagSpec, Flags, GroupSpec } from '../command.ts'
import { CommandError, EXIT, InterruptedError, UsageError } from '../exit-codes.ts'
import { hadNoEffect } from '../failures.ts'
import type { Session } from '../session.ts'
import type { Column, Field } from '../table.ts'
import { toPlainLine, toStateColour } from '../text.ts'
import { parseDeploymentId } from '../values.ts'
import { keysFileFlag } from './credentials.ts'
import { askKeys, hasKeys, inputFlags, nameFlags, readInput, withoutKeys } from './deployment-input.ts'
import { toText, yesFlag } from './flags.ts'
import { listCall, oneCall } from './one-call.ts'

const EXAMPLE_ID = '4f1c2a9e-0b7d-4c58-9a51-2f7d5f3b9c10'
const idArgument: ArgumentSpec = { name: 'DEPLOYMENT', description: 'the id of the deployment' }
const followFlag: FlagSpec = { flags: '--follow', description: 'print the log until the operation ends' }
const FOLLOW_CODES = ['0  started; with --follow: it succeeded', '1  with --follow: it failed']

/** The deployment of a domain that has no id yet. The domain becomes a part of a path. */
const toNewDeployment = (domain: string) => {
  const fqdn = domain.trim().toLowerCase().replace(/\.$/, '')
  if (/^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/.test(fqdn) && fqdn.length <= 253) return { kind: 'new-deployment', fqdn } as const
  throw new UsageError(`${JSON.stringify(domain)} is not a domain name; use a name such as cloud.acme.example.`)
}

const toId = (args: Arguments): string => parseDeploymentId(String(args[0]))

const toSubject = (id: string) => ({ kind: 'deployment', id }) as const

const toLogLine = ({ paint }: Session['output'], { time, phase, level, message }: DeploymentEvent): string => {
  const colour = level === 'error' ? 'red' : level === 'warn' ? 'yellow' : undefined
  return `${paint(time, 'dim')} ${phase} ${paint(toPlainLine(message), colour)}`
}

/** Prints the log from its start until the operation ends. Resolves with the deployment. */
const follow = async (session: Session, id: string, afterLine = ''): Promise<Deployment> => {
  const api = await session.api()
  try {
    for await (const entry of api.followLogs({ id, lastEventId: afterLine }, session.reading)) {
      if (entry.kind === 'done') return entry.deployment
      await session.output.line({ id: entry.id, ...entry.line }, toLogLine(session.output, entry.line))
    }
  } catch (error) {
    if (!session.host.interrupted.aborted) throw error
    throw new InterruptedError(
      String(session.host.interrupted.reason),
      `interrupted; the deployment continues. Follow it with: poolctl deployments logs -f ${id}`,
    )
  }
  throw new Error('the log ended without its last event')
}

/** The exit code of an operation that has ended, with a line about it. */
const reportEnd = (session: Session, { id, status, error }: Deployment): number => {
  session.output.note(error === undefined ? `${id} is ${status}.` : `${id} is ${status}: ${toPlainLine(error)}`)
  return status === 'failed' ? EXIT.negative : EXIT.done
}

interface Started {
  readonly id: string
  readonly status: string
}

/** Reports the start of an operation, and its end if the user follows it. */
const reportStart = async (session: Session, started: Started, flags: Flags, fromLine = ''): Promise<number> => {
  if (flags.follow !== true) {
    await session.output.done(started, `${started.id} is ${started.status}.`, started.id)
    session.output.note(`Follow it with: poolctl deployments logs -f ${started.id}`)
    return EXIT.done
  }
  session.output.note(`${started.id} is ${started.status}.`)
  return reportEnd(session, await follow(session, started.id, fromLine))
}

const toFields = (deployment: Deployment): readonly Field[] => {
  const { id, status, error, sovereignFQDN, orgName, orgEmail, providers, region, module } = deployment
  const { objectStorageRegion, objectStorageBucket, startedAt, finishedAt, numEvents, result } = deployment
  return [
    ['id', id],
    ['status', status, toStateColour(status)],
    ['error', error, 'red'],
    ['fqdn', sovereignFQDN],
    ['tenant', orgEmail === undefined ? orgName : `${orgName} <${orgEmail}>`],
    ['providers', providers.join(', ')],
    ['region', region],
    ['module', module],
    ['storage region', objectStorageRegion],
    ['bucket', objectStorageBucket],
    ['address', result?.loadBalancerIP],
    ['control plane', result?.controlPlaneIP],
    ['started at', startedAt],
    ['finished at', finishedAt ?? undefined],
    ['log lines', numEvents],
  ]
}

/** The request of a new deployment, complete with its keys. */
const readCreateRequest = async (session: Session, flags: Flags): Promise<Params<'createDeployment'>> => {
  const fields = await readInput(flags)
  const isOwnDomain = fields.sovereignFQDN !== undefined && fields.sovereignSubdomain === undefined
  if (toText(flags.fqdn) !== undefined && toText(flags.subdomain) !== undefined) {
    throw new UsageError('--fqdn and --subdomain exclude each other; use --fqdn for a domain of the tenant.')
  }
  fields.sovereignDomainMode ??= isOwnDomain ? 'byo' : 'pool'
  const missing = [
    ['orgName', '--org-name'],
    ['orgEmail', '--org-email'],
    ['providers', '--provider'],
    ['region', '--region'],
    ['sshPublicKey', '--ssh-public-key'],
    ...(fields.sovereignDomainMode === 'byo'
      ? [['sovereignFQDN', '--fqdn']]
      : [
          ['sovereignPoolDomain', '--pool'],
          ['sovereignSubdomain', '--subdomain'],
        ]),
  ].filter(([field]) => fields[field ?? ''] === undefined)
  if (missing.length > 0) {
    throw new UsageError(`the deployment needs ${missing.map(([, flag]) => flag).join(', ')}, or the fields in a file.`)
  }
  const needsKeys = fields.objectStorageRegion !== undefined && !hasKeys(fields)
  const keys = needsKeys ? await askKeys(session, flags) : {}
  // The service validates the fields and reports all that are invalid.
  return { ...fields, ...keys } as Params<'createDeployment'>
}

const create: CommandSpec = {
  name: 'create',
  summary: 'Create a deployment from a file, from flags, or from both',
  description:
    'The deployment token is not printed; poolctl keeps it in a file that only you can read. The keys of the object storage come from a prompt or from a file with mode 600. If the command is interrupted before it has the id, repeat it: it gets the result of the first request.',
  flags: [...nameFlags, ...inputFlags, followFlag],
  examples: [
    'deployments create -f acme.json --follow',
    'deployments create --org-name Acme --org-email ops@acme.example --pool pool.example --subdomain acme --provider local --region local --ssh-public-key ~/.ssh/id_ed25519.pub',
    'deployments create -f acme.json --storage-region fsn1 --keys-file keys.json',
  ],
  operations: ['createDeployment'],
  exitCodes: FOLLOW_CODES,
  async run(session, { flags }) {
    const request = await readCreateRequest(session, flags)
    const api = await session.api()
    const tokens = await session.tokens()
    const { sovereignFQDN, sovereignSubdomain, sovereignPoolDomain } = request
    const subject = toNewDeployment(String(sovereignFQDN ?? `${sovereignSubdomain}.${sovereignPoolDomain}`))
    const created = await tokens.once(subject, withoutKeys(request), {
      send: idempotencyKey =>
        session.write(async options => {
          const result = await api.createDeployment(request, { ...options, idempotencyKey })
          await tokens.save(toSubject(result.id), result.deploymentToken)
          return result
        }),
      toToken: () => undefined,
      isFinal: hadNoEffect,
    })
    return reportStart(session, created, flags)
  },
}

const listColumns: readonly Column<Deployment>[] = [
  { header: 'ID', value: ({ id }) => id, isFirm: true },
  { header: 'STATUS', value: item => item.status, colour: item => toStateColour(item.status) },
  { header: 'FQDN', value: ({ sovereignFQDN }) => sovereignFQDN },
  { header: 'TENANT', value: ({ orgName }) => orgName },
  { header: 'STARTED AT', value: ({ startedAt }) => startedAt },
  { header: 'ERROR', value: ({ error }) => error },
]

const list = listCall({
  name: 'list',
  summary: 'List the deployments, newest first',
  flags: [
    { flags: '--status <status>', description: 'only deployments with this status', choices: deploymentStatuses },
    { flags: '--search <text>', description: 'only deployments whose FQDN or organisation contains this text' },
  ],
  examples: ['deployments list', 'deployments list --status failed -o name'],
  operation: 'listDeployments',
  query: ({ flags }) => ({
    status: flags.status as Deployment['status'] | undefined,
    search: toText(flags.search),
  }),
  items: (api, query, options) => api.deployments(query, options),
  view: () => ({ key: 'deployments', columns: listColumns, toName: ({ id }) => id, empty: 'No deployments.' }),
})

const get = oneCall({
  name: 'get',
  summary: 'Show one deployment',
  arguments: [idArgument],
  examples: [`deployments get ${EXAMPLE_ID}`],
  operation: 'getDeployment',
  params: ({ args }) => ({ id: toId(args) }),
  show: (session, deployment) => session.output.item(deployment, { name: deployment.id, fields: toFields(deployment) }),
})

const logs: CommandSpec = {
  name: 'logs',
  summary: 'Print the log of a deployment',
  arguments: [idArgument],
  flags: [{ flags: '-f, --follow', description: 'print new lines until the operation ends' }],
  examples: [`deployments logs -f ${EXAMPLE_ID}`, `deployments logs ${EXAMPLE_ID} -o ndjson`],
  operations: ['followDeployment', 'getDeployment'],
  exitCodes: ['0  printed; with --follow: the operation succeeded', '1  with --follow: the operation failed'],
  async run(session, { args, flags }) {
    const id = toId(args)
    if (flags.follow === true) return reportEnd(session, await follow(session, id))
    const api = await session.api()
    const { numEvents } = await api.getDeployment({ id }, session.reading)
    if (numEvents === 0) return undefined
    for await (const entry of api.followLogs({ id }, session.reading)) {
      if (entry.kind === 'done') break
      await session.output.line({ id: entry.id, ...entry.line }, toLogLine(session.output, entry.line))
      // What comes later belongs to --follow.
      if (Number(entry.id) >= numEvents) break
    }
    return undefined
  },
}

/** The deployment, its token if it is stored, and the keys if it has object storage. */
const prepareRun = async (
  session: Session,
  id: string,
  flags: Flags,
  fields: Readonly<Record<string, unknown>> = {},
) => {
  const api = await session.api()
  const current = await api.getDeployment({ id }, session.reading)
  const hasStorage = current.objectStorageRegion !== '' || fields.objectStorageRegion !== undefined
  const keys = hasStorage && !hasKeys(fields) ? await askKeys(session, flags) : {}
  const deploymentToken = await (await session.tokens()).read(toSubject(id))
  return { api, current, keys, deploymentToken }
}

const removedFlag: FlagSpec = {
  flags: '--unfinished-removed',
  description: 'what the last failure lists as created outside the state does not exist any more',
}
const planHashFlag: FlagSpec = {
  flags: '--plan-hash <hash>',
  description: 'do exactly what the plan with this hash shows; fail, and change nothing, if the changes differ by now',
}
const toConfirmation = (flags: Flags) => ({
  ...(flags.unfinishedRemoved === true && { unfinishedRemoved: true }),
  ...(flags.planHash !== undefined && { planHash: toText(flags.planHash) }),
})

const apply: CommandSpec = {
  name: 'apply',
  summary: 'Apply the current module again, also with new input',
  description: 'A field that is absent keeps its value. The name cannot change.',
  arguments: [idArgument],
  flags: [...inputFlags, planHashFlag, removedFlag, followFlag],
  examples: [
    `deployments apply ${EXAMPLE_ID} --follow`,
    `deployments apply ${EXAMPLE_ID} --region nbg1 --keys-file keys.json`,
  ],
  operations: ['applyDeployment'],
  exitCodes: FOLLOW_CODES,
  async run(session, { args, flags }) {
    const id = toId(args)
    const fields = await readInput(flags)
    const { api, current, keys, deploymentToken } = await prepareRun(session, id, flags, fields)
    const request = { ...fields, ...keys, ...toConfirmation(flags), id, deploymentToken } as Params<'applyDeployment'>
    const started = await session.write(options => api.applyDeployment(request, options))
    return reportStart(session, started, flags, String(current.numEvents))
  },
}

const plan: CommandSpec = {
  name: 'plan',
  summary: 'Print what an apply or a destroy would do',
  arguments: [idArgument],
  flags: [{ flags: '--destroy', description: 'plan a destroy' }, ...inputFlags],
  examples: [`deployments plan ${EXAMPLE_ID}`, `deployments plan ${EXAMPLE_ID} --destroy`],
  operations: ['planDeployment'],
  async run(session, { args, flags }) {
    const id = toId(args)
    const fields = await readInput(flags)
    const { api, keys, deploymentToken } = await prepareRun(session, id, flags, fields)
    const operation = flags.destroy === true ? 'destroy' : 'apply'
    const request = { ...fields, ...keys, id, deploymentToken, operation } as Params<'planDeployment'>
    session.progress.update(`planning the ${operation} of ${id}`)
    const result = await api.planDeployment(request, session.reading)
    session.progress.stop()
    await session.output.text(result, result.text)
    if (result.planHash === undefined) return
    session.output.note(
      `For exactly this plan: poolctl deployments ${operation} ${id} --plan-hash ${result.planHash}, with the same input.`,
    )
  },
}

const destroy: CommandSpec = {
  name: 'destroy',
  summary: 'Destroy the infrastructure of a deployment but for its bucket, then release its name',
  arguments: [idArgument],
  flags: [keysFileFlag, planHashFlag, removedFlag, followFlag, yesFlag],
  examples: [`deployments destroy ${EXAMPLE_ID} --follow`],
  operations: ['destroyDeployment'],
  exitCodes: FOLLOW_CODES,
  async run(session, { args, flags }) {
    const id = toId(args)
    const { api, current, keys, deploymentToken } = await prepareRun(session, id, flags)
    const { sovereignFQDN } = current
    await session.confirm(`Destroy the infrastructure of ${sovereignFQDN}?`, sovereignFQDN, flags.yes === true)
    // Without object storage, the body is empty.
    const request = { id, deploymentToken, ...keys, ...toConfirmation(flags) } as Params<'destroyDeployment'>
    const started = await session.write(options => api.destroyDeployment(request, options))
    return reportStart(session, started, flags, String(current.numEvents))
  },
}

/** Statuses of a run that DELETE cancels. */
const RUNNING: ReadonlySet<string> = new Set(['pending', 'provisioning', 'destroying'])

interface Removal extends Pick<CommandSpec, 'name' | 'summary' | 'description'> {
  readonly question: (deployment: Deployment) => string
  /** What to do with a deployment whose status does not fit; undefined: it fits. */
  readonly reject: (deployment: Deployment) => string | undefined
  readonly mode?: 'cancel' | 'abandon'
  readonly moreFlags?: readonly FlagSpec[]
}

const removal = ({ question, reject, mode, moreFlags = [], ...spec }: Removal): CommandSpec => ({
  ...spec,
  arguments: [idArgument],
  flags: [...moreFlags, yesFlag],
  examples: [`deployments ${spec.name} ${EXAMPLE_ID}`],
  operations: ['removeDeployment'],
  async run(session, { args, flags }) {
    const id = toId(args)
    const api = await session.api()
    const tokens = await session.tokens()
    const deployment = await api.getDeployment({ id }, session.reading)
    const rejection = reject(deployment)
    if (rejection !== undefined) throw new CommandError(rejection, EXIT.rejected)
    const { sovereignFQDN } = deployment
    await session.confirm(question(deployment), sovereignFQDN, flags.yes === true)
    const deploymentToken = await tokens.read(toSubject(id))
    const request = { id, deploymentToken, ...(mode && { [mode]: true }), ...(flags.force === true && { force: true }) }
    const result = await session.write(options => api.removeDeployment(request, options))
    if (result) {
      await session.output.done(result, `${id} is being cancelled; it will end as failed.`, id)
      return
    }
    await tokens.remove(toSubject(id))
    await session.output.done({ id, deleted: true }, `${id} is deleted.`, id)
  },
})

const cancel = removal({
  name: 'cancel',
  summary: 'Cancel the run of a deployment; it ends as failed',
  question: ({ sovereignFQDN: fqdn }) => `Cancel the run of ${fqdn}?`,
  mode: 'cancel',
  moreFlags: [{ flags: '--force', description: 'do not wait until Terraform has saved what it is creating' }],
  reject: ({ status }) =>
    RUNNING.has(status)
      ? undefined
      : `there is no run to cancel: the deployment is ${status}; to delete it, run: poolctl deployments delete`,
})

const deleteCommand = removal({
  name: 'delete',
  summary: 'Delete a finished deployment of which nothing remains',
  question: ({ sovereignFQDN, keptBucket }) =>
    keptBucket === undefined
      ? `Delete the deployment of ${sovereignFQDN}?`
      : `Delete the deployment of ${sovereignFQDN}? The bucket ${keptBucket} and its content are kept; a new deployment of this FQDN can use them: deployments create --adopt-bucket.`,
  reject: ({ status }) =>
    RUNNING.has(status) ? `the deployment is ${status}; cancel the run first: poolctl deployments cancel` : undefined,
})

const abandon = removal({
  name: 'abandon',
  summary: 'Delete a deployment whose infrastructure may still exist',
  description:
    'Nothing is destroyed: the state is archived, and the infrastructure must be removed by hand. Operators only.',
  question: ({ sovereignFQDN: fqdn }) =>
    `Abandon the infrastructure of ${fqdn}? It keeps running and is not managed any more.`,
  reject: () => undefined,
  mode: 'abandon',
})

const unlock = oneCall({
  name: 'unlock',
  summary: 'Lift the state lock that a run of a deployment left',
  description: 'Use it only if no Terraform of this deployment runs on any machine. Operators only.',
  arguments: [idArgument],
  flags: [yesFlag],
  examples: [`deployments unlock ${EXAMPLE_ID}`],
  operation: 'unlockDeployment',
  params: ({ args }) => ({ id: toId(args) }),
  confirm: ({ id }) => ({
    question: `Lift the state lock of ${id}? No Terraform of it may be running.`,
    expected: id,
  }),
  show: (session, result, { id }) =>
    session.output.done(result, result.unlocked ? `${id} is unlocked.` : `${id} had no lock.`, id),
})

const historyColumns: readonly Column<DeploymentHistoryEntry>[] = [
  { header: 'AT', value: ({ at }) => at, isFirm: true },
  { header: 'EVENT', value: ({ event }) => event, colour: ({ event }) => toStateColour(event), isFirm: true },
  { header: 'FQDN', value: ({ sovereignFQDN }) => sovereignFQDN },
  { header: 'DEPLOYMENT', value: ({ deploymentId }) => deploymentId },
  { header: 'ACTOR', value: ({ actor }) => actor },
  { header: 'DETAIL', value: ({ detail }) => detail },
]

const history = listCall({
  name: 'history',
  summary: 'List what was done to deployments, newest first',
  flags: [
    { flags: '--deployment <id>', description: 'only entries of this deployment' },
    { flags: '--fqdn <domain>', description: 'only entries of this domain' },
  ],
  examples: ['deployments history --limit 20', 'deployments history --fqdn acme.pool.example'],
  operation: 'readDeploymentHistory',
  query: ({ flags }) => {
    const deployment = toText(flags.deployment)
    return {
      deployment: deployment === undefined ? undefined : parseDeploymentId(deployment),
      fqdn: toText(flags.fqdn),
    }
  },
  items: (api, query, options) => api.deploymentHistoryEntries(query, options),
  view: () => ({
    key: 'entries',
    columns: historyColumns,
    toName: ({ deploymentId }) => deploymentId,
    empty: 'No history.',
  }),
})

const challenge: CommandSpec = {
  name: 'challenge',
  summary: 'Print the TXT record that proves the control of a domain',
  description:
    'Only an installation with PDM_BYO_PROOF=required needs the record, for a deployment with --fqdn. Create the deployment on this machine and in this context: poolctl keeps the key that reserves the value for you.',
  arguments: [{ name: 'DOMAIN', description: 'the domain of the tenant' }],
  examples: ['deployments challenge cloud.acme.example'],
  operations: ['createDomainChallenge'],
  async run(session, { args }) {
    const domain = String(args[0])
    const api = await session.api()
    const tokens = await session.tokens()
    const idempotencyKey = await tokens.createChallengeKey(toNewDeployment(domain))
    const result = await session.write(options => api.createDomainChallenge({ domain }, { ...options, idempotencyKey }))
    await session.output.item(result, {
      name: result.name,
      fields: [
        ['name', result.name],
        ['type', result.type],
        ['value', result.value],
        ['expires at', result.expiresAt],
      ],
    })
  },
}

export const deploymentCommands: GroupSpec = {
  name: 'deployments',
  summary: 'Deployments: create, apply, plan, destroy',
  commands: [create, list, get, logs, apply, plan, destroy, cancel, deleteCommand, abandon, unlock, history, challenge],
}
