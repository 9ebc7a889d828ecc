import { until } from '@pool/test-kit/poll.ts'
import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { lookUp } from './dns.ts'
import type { FaultStack } from './fault-stack.ts'
import { deleteRecord, outdateDatabase, writeOrphan } from './seed.ts'
import { SSH_PUBLIC_KEY, seedDeployment } from './seed-deployment.ts'
import { missingTerraform } from './suite.ts'

// A change of each kind: with an Idempotency-Key, with an effect that cannot happen twice, of a run, of the witness. Each has
// the proof that it took effect once and completely. Each task on a zone has a pool of its own, because only one writer has a
// zone at a time.

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

export const pools = [NAMES, DEPLOYMENTS, 'converge.test', 'resume.test', 'adopt.test'] as const

const button = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: typeof name === 'string' })
const dialog = (page: Page) => page.getByRole('dialog')

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

const toFqdn = (subdomain: string) => `${subdomain}.${DEPLOYMENTS}`
const toSlot = (subject: string) => `pair/${subject}`

const tasks: readonly FaultTask[] = [
  {
    name: 'release',
    prepare: async (stack, subject) => {
      await activate(stack, NAMES, `release-${subject}`)
      return `/names/${NAMES}/release-${subject}`
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
  {
    name: 'adopt an orphan',
    prepare: async (stack, subject) => {
      await writeOrphan(stack, `stray-${subject}`, 'adopt.test')
      return '/zones/adopt.test'
    },
    open: async (page, subject) => {
      await button(page, 'Compare with the zone').click()
      await page.getByRole('row', { name: new RegExp(`stray-${subject}`) }).waitFor()
      await button(page, 'Adopt').click()
      await dialog(page).getByRole('checkbox').waitFor()
    },
    confirm: 'Adopt 1',
    done: /orphans? adopted\./,
    countEffects: (stack, subject) => countNameEvents(stack, 'adopt.test', `stray-${subject}`, 'adopted'),
    expectComplete: async (stack, subject) => {
      expect((await readName(stack, 'adopt.test', `stray-${subject}`))?.state).toBe('active')
      await untilResolves(stack, `stray-${subject}.adopt.test`, ['203.0.113.200'])
    },
    result: page => page.getByText('in sync').first(),
  },
  {
    name: 'cancel',
    prepare: async (stack, subject) => {
      const seed = { pool: DEPLOYMENTS, subdomain: `cancel-${subject}`, status: 'provisioning' } as const
      return `/deployments/${(await seedDeployment(stack, seed)).id}`
    },
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
    name: 'release of a lease',
    isOfWitness: true,
    prepare: async ({ leases }, subject) => {
      await leases.acquire(toSlot(subject), { holder: 'region-a/controller-0', generation: 0, ttlMs: 3_600_000 })
      return `/leases/${encodeURIComponent(toSlot(subject))}`
    },
    open: async page => {
      await button(page, 'Release').click()
      await dialog(page).getByRole('checkbox').check()
    },
    confirm: 'Release',
    done: 'is free.',
    countEffects: async ({ leases }, subject) => (await leases.read(toSlot(subject))).lease.generation - 1,
    expectComplete: async ({ leases }, subject) => {
      expect((await leases.read(toSlot(subject))).lease).toMatchObject({ holder: '', generation: 2 })
    },
    result: page => page.getByRole('listitem').filter({ hasText: 'released' }).first(),
  },
]

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
    // It has no Idempotency-Key: a browser can send it again. During the run it conflicts; afterwards there is nothing left to
    // do. So what counts is that it was started.
    countEffects: async (stack, subject) =>
      Math.min(1, await countDeploymentEvents(stack, toFqdn(`apply-${subject}`), 'apply-requested')),
    expectComplete: async (stack, subject) => {
      await until('the run ends', async () => (await readStatus(stack, toFqdn(`apply-${subject}`))) === 'ready')
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

export const faultTasks: readonly FaultTask[] = [...tasks, ...(missingTerraform === undefined ? terraformTasks : [])]
