import { findProgram } from '@pool/dev/server-process'
import { until } from '@pool/test-kit/poll.ts'
import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { lookUp } from './dns.ts'
import type { FaultStack } from './fault-stack.ts'
import { deleteRecord, outdateDatabase, writeOrphan } from './seed.ts'
import { SSH_PUBLIC_KEY, seedDeployment } from './seed-deployment.ts'

// What an operator changes with the console, each with the proof that it took effect once and completely. Each task on a zone
// has a pool of its own, because only one writer has a zone at a time.

/** A change of an operator. `subject` is a label that no earlier run of the task had. */
export interface FaultTask {
  readonly name: string
  /** Writes what the task needs. Resolves with the path of its page. */
  readonly prepare: (stack: FaultStack, subject: string) => Promise<string>
  /** From the page to its confirmation, which states what will happen. */
  readonly open: (page: Page, subject: string) => Promise<void>
  /** The label of the button that starts it. */
  readonly confirm: string | RegExp
  /** What the page says when it is done. */
  readonly done: string | RegExp
  /** How often the task took effect: by its entries in the history, where there are any. */
  readonly countEffects: (stack: FaultStack, subject: string) => Promise<number>
  /** Throws if a part of the effect is missing in the database or in DNS. */
  readonly expectComplete: (stack: FaultStack, subject: string) => Promise<void>
  /** What the page shows afterwards. */
  readonly result: (page: Page, subject: string) => Locator
  /** True: the form has its own page and survives a reload. False: a dialog of a page. */
  readonly isForm?: boolean
  /** The request only reaches the witness: the database takes no part in it but for the session. */
  readonly isOfWitness?: boolean
}

const ADDRESS = '203.0.113.10'
const NEW_ADDRESS = '203.0.113.99'
const NAMES = 'names.test'
const DEPLOYMENTS = 'deployments.test'

export const pools = [
  NAMES,
  DEPLOYMENTS,
  'converge.test',
  'republish.test',
  'resume.test',
  'adopt.test',
  'remove.test',
  'read.test',
] as const

const button = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: typeof name === 'string' })
const dialog = (page: Page) => page.getByRole('dialog')
const namePath = (subdomain: string, pool: string = NAMES) => `/names/${pool}/${subdomain}`
const toState = (page: Page, text: string) => page.locator('.facts').getByText(text).first()

const countNameEvents = async ({ sql }: FaultStack, pool: string, subdomain: string, event: string) => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from allocation_history
    where pool_domain = ${pool} and subdomain = ${subdomain} and event = ${event}`
  return row?.count ?? 0
}
const countDeploymentEvents = async ({ sql }: FaultStack, fqdn: string, event: string) => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from deployment_history where sovereign_fqdn = ${fqdn} and event = ${event}`
  return row?.count ?? 0
}
const readName = async ({ sql }: FaultStack, pool: string, subdomain: string) => {
  const [row] = await sql<{ state: string; address: string | null }[]>`
    select state, host(load_balancer_ip) as address from pool_allocations
    where pool_domain = ${pool} and subdomain = ${subdomain}`
  return row
}
const readStatus = async ({ sql }: FaultStack, fqdn: string): Promise<string | undefined> => {
  const [row] = await sql`select status from deployments where sovereign_fqdn = ${fqdn}`
  return row?.status
}
/** Polls DNS, which follows the database. A failure has what the database knows of the name and its zone. */
const untilResolves = async ({ dnsServer, sql }: FaultStack, name: string, addresses: readonly string[]) => {
  for (const label of ['', 'api.', 'gitea.', 'harbor.', 'console.']) {
    const resolves = until(`${label}${name} has ${addresses}`, async () => {
      const found = await lookUp(dnsServer, `${label}${name}`)
      return JSON.stringify(found) === JSON.stringify(addresses)
    })
    await resolves.catch(async cause => {
      const rows = await sql`
        select to_jsonb(n) as name, to_jsonb(w) as zone, now() from dns_names n left join dns_zone_writes w using (zone)
        where n.subdomain || '.' || n.zone = ${name}`
      throw new Error(`the database has ${JSON.stringify(rows)}`, { cause })
    })
  }
}

const activate = async ({ client }: FaultStack, pool: string, subdomain: string) =>
  client.reserveAndCommit({ domain: pool, subdomain, loadBalancerIP: ADDRESS })

const nameTasks: readonly FaultTask[] = [
  {
    name: 'release',
    prepare: async (stack, subject) => {
      await activate(stack, NAMES, `release-${subject}`)
      return namePath(`release-${subject}`)
    },
    open: async page => {
      await button(page, 'Release').click()
      await dialog(page).getByText('In DNS, 6 record sets are deleted.').waitFor()
    },
    confirm: 'Release',
    done: 'is released',
    countEffects: (stack, subject) => countNameEvents(stack, NAMES, `release-${subject}`, 'released'),
    expectComplete: async (stack, subject) => {
      expect(await readName(stack, NAMES, `release-${subject}`)).toMatchObject({ state: 'released' })
      await untilResolves(stack, `release-${subject}.${NAMES}`, [])
    },
    result: page => button(page, 'End the cool-off'),
  },
  {
    name: 'update',
    prepare: async (stack, subject) => {
      await activate(stack, NAMES, `update-${subject}`)
      return namePath(`update-${subject}`)
    },
    open: async page => {
      await button(page, 'Change the address').click()
      await dialog(page).getByLabel('New address').fill(NEW_ADDRESS)
      await dialog(page).getByText('gets the new address').waitFor()
    },
    confirm: 'Change the address',
    done: `has the address ${NEW_ADDRESS}`,
    countEffects: (stack, subject) => countNameEvents(stack, NAMES, `update-${subject}`, 'updated'),
    expectComplete: async (stack, subject) => {
      expect(await readName(stack, NAMES, `update-${subject}`)).toEqual({ state: 'active', address: NEW_ADDRESS })
      await untilResolves(stack, `update-${subject}.${NAMES}`, [NEW_ADDRESS])
    },
    result: page => toState(page, NEW_ADDRESS),
  },
  {
    name: 'end of a cool-off',
    prepare: async (stack, subject) => {
      await activate(stack, NAMES, `lift-${subject}`)
      await stack.client.releaseName({ domain: NAMES, subdomain: `lift-${subject}` })
      return namePath(`lift-${subject}`)
    },
    open: async page => {
      await button(page, 'End the cool-off').click()
      await dialog(page).getByText('Any client can reserve it.').waitFor()
    },
    confirm: 'End the cool-off',
    done: 'is free.',
    countEffects: (stack, subject) => countNameEvents(stack, NAMES, `lift-${subject}`, 'cool-off-lifted'),
    expectComplete: async (stack, subject) => {
      const { available } = await stack.client.checkName({ domain: NAMES, sub: `lift-${subject}` })
      expect(available).toBe(true)
      await untilResolves(stack, `lift-${subject}.${NAMES}`, [])
    },
    result: page => toState(page, 'free'),
  },
]

const openComparison = async (page: Page, subject: string) => {
  await button(page, 'Compare with the zone').click()
  await page
    .getByRole('table', { name: 'Orphans' })
    .getByRole('row', { name: new RegExp(subject) })
    .waitFor()
}

const createOrphanTask = (name: 'adopt' | 'remove', event: string): FaultTask => {
  const pool = `${name}.test`
  const label = name === 'adopt' ? 'Adopt' : 'Remove'
  return {
    name: `${name} an orphan`,
    prepare: async (stack, subject) => {
      await writeOrphan(stack, `stray-${subject}`, pool)
      return `/zones/${pool}`
    },
    open: async (page, subject) => {
      await openComparison(page, `stray-${subject}`)
      await button(page, label).click()
      await dialog(page).getByRole('checkbox').waitFor()
    },
    confirm: `${label} 1`,
    done: name === 'adopt' ? /orphans? adopted\./ : /orphans? removed\./,
    countEffects: (stack, subject) => countNameEvents(stack, pool, `stray-${subject}`, event),
    expectComplete: async (stack, subject) => {
      const found = await readName(stack, pool, `stray-${subject}`)
      expect(found?.state).toBe(name === 'adopt' ? 'active' : undefined)
      await untilResolves(stack, `stray-${subject}.${pool}`, name === 'adopt' ? ['203.0.113.200'] : [])
    },
    result: page => page.getByText('in sync').first(),
  }
}

const zoneTasks: readonly FaultTask[] = [
  {
    name: 'converge',
    prepare: async (stack, subject) => {
      await activate(stack, 'converge.test', subject)
      await deleteRecord(stack, `api.${subject}.converge.test`, 'A')
      return '/zones/converge.test'
    },
    open: async (page, subject) => {
      await button(page, 'Converge').click()
      await dialog(page).getByText(`api.${subject}.converge.test`).waitFor()
    },
    confirm: 'Converge',
    done: /converge\.test: (?:\d+ change|the zone has the desired records)/,
    countEffects: async ({ sql }, subject) => {
      const name = `test.converge.${subject}.api`
      return (await sql`select from local_dns_record_sets where reversed_name = ${name}`).length
    },
    expectComplete: (stack, subject) => untilResolves(stack, `${subject}.converge.test`, [ADDRESS]),
    result: page => page.getByText('in sync').first(),
  },
  {
    name: 'republish',
    prepare: async (stack, subject) => {
      await activate(stack, 'republish.test', subject)
      // As if the name was published with a template without this record.
      const missing = `gitea.${subject}.republish.test`
      await stack.sql`
        update dns_names set
          desired = jsonb_path_query_array(desired, '$[*] ? (@.name != $missing)', jsonb_build_object('missing', ${missing}::text)),
          owned = jsonb_path_query_array(owned, '$[*] ? (@.name != $missing)', jsonb_build_object('missing', ${missing}::text))
        where zone = 'republish.test' and subdomain = ${subject}`
      await deleteRecord(stack, missing, 'A')
      return '/zones/republish.test'
    },
    open: async (page, subject) => {
      await button(page, 'Republish').click()
      await dialog(page).getByText(`gitea.${subject}.republish.test`).waitFor()
    },
    confirm: 'Republish',
    done: /republish\.test: (?:1 name republished|every active name has the records)/,
    countEffects: (stack, subject) => countNameEvents(stack, 'republish.test', subject, 'republished'),
    expectComplete: (stack, subject) => untilResolves(stack, `${subject}.republish.test`, [ADDRESS]),
    result: page => page.getByText('in sync').first(),
  },
  {
    name: 'resume',
    prepare: async (stack, subject) => {
      await activate(stack, 'resume.test', subject)
      await outdateDatabase(stack, 'resume.test')
      await stack.client.updateName({ domain: 'resume.test', subdomain: subject, loadBalancerIP: NEW_ADDRESS })
      return '/zones/resume.test'
    },
    open: async page => {
      await button(page, 'Resume').click()
      await dialog(page).getByText(`database ${NEW_ADDRESS}, zone ${ADDRESS}`).waitFor()
    },
    confirm: 'Resume',
    done: 'resume.test is written again',
    countEffects: async ({ sql }) =>
      (await sql`select from dns_zone_writes where zone = 'resume.test' and stopped_cause is null`).length,
    expectComplete: (stack, subject) => untilResolves(stack, `${subject}.resume.test`, [NEW_ADDRESS]),
    result: page => page.getByText('in sync').first(),
  },
  createOrphanTask('adopt', 'adopted'),
  createOrphanTask('remove', 'orphan-removed'),
]

/** The id of the deployment of each FQDN: some tasks delete the row. */
const prepareDeployment = async (
  stack: FaultStack,
  subdomain: string,
  seed: Omit<Parameters<typeof seedDeployment>[1], 'pool' | 'subdomain'>,
): Promise<string> => {
  const { id } = await seedDeployment(stack, { pool: DEPLOYMENTS, subdomain, ...seed })
  return `/deployments/${id}`
}
const toFqdn = (subdomain: string) => `${subdomain}.${DEPLOYMENTS}`

const deploymentTasks: readonly FaultTask[] = [
  {
    name: 'abandon',
    prepare: (stack, subject) => prepareDeployment(stack, `abandon-${subject}`, { status: 'ready' }),
    open: async page => {
      await button(page, 'Abandon').click()
      await dialog(page).getByText('Nothing is destroyed.').waitFor()
    },
    confirm: 'Abandon',
    done: 'is abandoned',
    // It is marked first, and complete when the deployment is deleted: to confirm again continues.
    countEffects: (stack, subject) => countDeploymentEvents(stack, toFqdn(`abandon-${subject}`), 'deleted'),
    expectComplete: async (stack, subject) => {
      expect(await readStatus(stack, toFqdn(`abandon-${subject}`))).toBe(undefined)
      expect(await countDeploymentEvents(stack, toFqdn(`abandon-${subject}`), 'abandoned')).toBe(1)
      expect((await readName(stack, DEPLOYMENTS, `abandon-${subject}`))?.state).not.toBe('active')
      await untilResolves(stack, toFqdn(`abandon-${subject}`), [])
    },
    result: page => page.getByRole('alert'),
  },
  {
    name: 'cancel',
    prepare: (stack, subject) => prepareDeployment(stack, `cancel-${subject}`, { status: 'provisioning' }),
    open: async page => {
      await button(page, 'Cancel the run').click()
      await dialog(page).getByText('Terraform is interrupted.').waitFor()
    },
    confirm: 'Cancel the run',
    done: 'is being cancelled',
    countEffects: (stack, subject) => countDeploymentEvents(stack, toFqdn(`cancel-${subject}`), 'cancelled'),
    expectComplete: async ({ sql }, subject) => {
      const rows = await sql`
        select from deployments where sovereign_fqdn = ${toFqdn(`cancel-${subject}`)} and cancelled_at is not null`
      expect(rows.length).toBe(1)
    },
    result: page => page.getByText('Cancelled').first(),
  },
  {
    name: 'delete',
    prepare: (stack, subject) => prepareDeployment(stack, `delete-${subject}`, { status: 'destroyed' }),
    open: async page => {
      await button(page, 'Delete').click()
      await dialog(page).getByText('The deployment and its log are deleted').waitFor()
    },
    confirm: 'Delete',
    done: 'is deleted',
    countEffects: (stack, subject) => countDeploymentEvents(stack, toFqdn(`delete-${subject}`), 'deleted'),
    expectComplete: async (stack, subject) => {
      expect(await readStatus(stack, toFqdn(`delete-${subject}`))).toBe(undefined)
    },
    result: page => page.getByRole('alert'),
  },
  {
    name: 'lift a bucket claim',
    prepare: async (stack, subject) => {
      await prepareDeployment(stack, `bucket-${subject}`, { status: 'destroyed', bucket: `bucket-${subject}` })
      return '/buckets'
    },
    open: async (page, subject) => {
      await button(page, `Lift the claim of bucket-${subject}`).click()
      await dialog(page).getByText('Another deployment can derive this bucket afterwards').waitFor()
    },
    confirm: 'Lift the claim',
    done: 'is lifted',
    countEffects: (stack, subject) => countDeploymentEvents(stack, toFqdn(`bucket-${subject}`), 'bucket-claim-lifted'),
    expectComplete: async ({ sql }, subject) => {
      expect((await sql`select from bucket_claims where bucket = ${`bucket-${subject}`}`).length).toBe(0)
    },
    result: page => page.getByText('No deployment has claimed a bucket.'),
  },
]

const toSlot = (subject: string) => `pair/${subject}`
const HOLDER = 'region-a/controller-0'

const leaseTask: FaultTask = {
  name: 'release of a lease',
  isOfWitness: true,
  prepare: async ({ leases }, subject) => {
    await leases.acquire(toSlot(subject), { holder: HOLDER, generation: 0, ttlMs: 3_600_000 })
    return `/leases/${encodeURIComponent(toSlot(subject))}`
  },
  open: async page => {
    await button(page, 'Release').click()
    await dialog(page).getByRole('checkbox').check()
  },
  confirm: 'Release',
  done: 'is free.',
  countEffects: async ({ leases }, subject) => {
    const { lease } = await leases.read(toSlot(subject))
    return lease.generation - 1
  },
  expectComplete: async ({ leases }, subject) => {
    expect((await leases.read(toSlot(subject))).lease).toMatchObject({ holder: '', generation: 2 })
  },
  result: page => page.getByRole('listitem').filter({ hasText: 'released' }).first(),
}

const LOCK_ID = '0b9e5c1f-6f0e-4f3a-8f57-3f2a1c9d7e60'

/** A deployment with infrastructure that Terraform has made. */
export const prepareReady = async ({ client }: FaultStack, subdomain: string): Promise<string> => {
  const { id } = await client.createDeployment({
    orgName: 'Globex',
    orgEmail: 'ops@globex.example',
    sovereignDomainMode: 'pool',
    sovereignPoolDomain: DEPLOYMENTS,
    sovereignSubdomain: subdomain,
    providers: ['local'],
    region: 'local',
    sshPublicKey: SSH_PUBLIC_KEY,
  })
  await until(`${subdomain} is ready`, async () => (await client.getDeployment({ id })).status === 'ready')
  return `/deployments/${id}`
}

/**
 * An apply and a destroy have no Idempotency-Key: a browser can send one again. During the run it conflicts; afterwards there is
 * nothing left to do. So what counts is that it was started.
 */
const countStarts = async (stack: FaultStack, fqdn: string, operation: 'apply' | 'destroy'): Promise<number> =>
  Math.min(1, await countDeploymentEvents(stack, fqdn, `${operation}-requested`))

/** The run has ended with this status and without an error. */
const untilEnded = async ({ sql }: FaultStack, fqdn: string, status: string): Promise<void> => {
  await until(`${fqdn} is ${status}`, async () => {
    const [row] = await sql`select status, error from deployments where sovereign_fqdn = ${fqdn}`
    if (row?.status === 'failed') throw new Error(`${fqdn}: ${row.error}`)
    return row?.status === status
  })
}

/** With real Terraform. */
const terraformTasks: readonly FaultTask[] = [
  {
    name: 'apply',
    prepare: (stack, subject) => prepareReady(stack, `apply-${subject}`),
    open: async page => {
      await button(page, 'Apply').click()
      await dialog(page).getByText('Terraform applies the current module').waitFor()
    },
    confirm: 'Apply',
    done: 'has started',
    countEffects: (stack, subject) => countStarts(stack, toFqdn(`apply-${subject}`), 'apply'),
    expectComplete: async (stack, subject) => {
      await untilEnded(stack, toFqdn(`apply-${subject}`), 'ready')
      const name = await readName(stack, DEPLOYMENTS, `apply-${subject}`)
      expect(name?.state).toBe('active')
      await untilResolves(stack, toFqdn(`apply-${subject}`), [name?.address ?? ''])
      const made = await stack.sql`
        select from deployment_log_lines l join deployments d on d.id = l.deployment_id
        where d.sovereign_fqdn = ${toFqdn(`apply-${subject}`)} and l.message like 'Apply complete! Resources: 4 added%'`
      expect(made.length, 'how often Terraform made the infrastructure').toBe(1)
    },
    result: page => button(page, 'Destroy'),
  },
  {
    name: 'destroy',
    prepare: (stack, subject) => prepareReady(stack, `destroy-${subject}`),
    open: async page => {
      await button(page, 'Destroy').click()
      await dialog(page).getByText('Terraform destroys the infrastructure').waitFor()
    },
    confirm: 'Destroy',
    done: 'has started',
    countEffects: (stack, subject) => countStarts(stack, toFqdn(`destroy-${subject}`), 'destroy'),
    expectComplete: async (stack, subject) => {
      await untilEnded(stack, toFqdn(`destroy-${subject}`), 'destroyed')
      expect(await countNameEvents(stack, DEPLOYMENTS, `destroy-${subject}`, 'released')).toBe(1)
      await untilResolves(stack, toFqdn(`destroy-${subject}`), [])
    },
    result: page => button(page, 'Delete'),
  },
  {
    name: 'unlock',
    prepare: (stack, subject) => prepareDeployment(stack, `unlock-${subject}`, { status: 'failed', lockId: LOCK_ID }),
    open: async page => {
      await button(page, 'Unlock the state').click()
      await dialog(page).getByText('two at a time damage the state').waitFor()
    },
    confirm: 'Unlock',
    done: /is unlocked|no longer existed/,
    countEffects: (stack, subject) => countDeploymentEvents(stack, toFqdn(`unlock-${subject}`), 'unlocked'),
    expectComplete: async ({ sql }, subject) => {
      const fqdn = toFqdn(`unlock-${subject}`)
      expect((await sql`select from lineages where sovereign_fqdn = ${fqdn} and state_lock is null`).length).toBe(1)
    },
    result: page => page.getByRole('listitem').filter({ hasText: 'State unlocked' }).first(),
  },
  {
    name: 'create with the wizard',
    isForm: true,
    prepare: async () => '/deployments/new',
    open: async (page, subject) => {
      const next = () => button(page, 'Continue').click()
      await page.getByLabel('Pool', { exact: true }).selectOption(DEPLOYMENTS)
      await page.getByLabel('Subdomain').fill(`create-${subject}`)
      await page.getByText('is free.').waitFor()
      await next()
      await page.getByLabel('Organisation').fill('Globex')
      await page.getByLabel('Mail address').fill('ops@globex.example')
      await page.getByRole('checkbox', { name: 'local' }).check()
      await page.getByLabel('Region').fill('local')
      await next()
      await page.getByLabel('SSH public key').fill(SSH_PUBLIC_KEY)
      await next()
      await page.getByRole('heading', { name: 'Summary' }).waitFor()
    },
    confirm: 'Create the deployment',
    done: 'The deployment has started.',
    countEffects: (stack, subject) => countDeploymentEvents(stack, toFqdn(`create-${subject}`), 'created'),
    expectComplete: async (stack, subject) => {
      await until('the deployment is ready', async () => {
        const status = await readStatus(stack, toFqdn(`create-${subject}`))
        return status === 'ready' || status === 'failed'
      })
    },
    result: page => page.getByRole('heading', { name: 'New deployment' }),
  },
]

export const missingTerraform = findProgram('terraform')
  ? undefined
  : 'Terraform is not installed: install terraform 1.11, to create deployments from the console.'

export const faultTasks: readonly FaultTask[] = [
  ...nameTasks,
  ...zoneTasks,
  ...deploymentTasks,
  leaseTask,
  ...(missingTerraform === undefined ? terraformTasks : []),
]
