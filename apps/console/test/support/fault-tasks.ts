import { until } from '@pool/test-kit/poll.ts'
import { expect } from 'vitest'
import { deleteRecord, lookUp, outdateDatabase, SSH_PUBLIC_KEY, seedDeployment, writeOrphan } from './seed.ts'
import { type ConsoleStack, type ConsoleSuite, missingTerraform } from './suite.ts'

// A change of each kind: with an Idempotency-Key, with an effect that cannot happen twice, of a run, of the witness. Each task on
// a zone has a pool of its own.

/** A change of an operator. `subject` is a label that no earlier run of the task had. */
export interface FaultTask {
  readonly name: string
  /** Writes what the task needs. Resolves with the path of its page. */
  readonly prepare: (stack: ConsoleStack, subject: string) => Promise<string>
  /** From the page to its confirmation, which states what will happen. */
  readonly open: (suite: ConsoleSuite, subject: string) => Promise<void>
  /** The label of the button that starts it. */
  readonly confirm: string
  /** What the page says when it is done. */
  readonly done: string | RegExp
  /** How often the task took effect: by its entries in the history, where there are any. */
  readonly countEffects: (stack: ConsoleStack, subject: string) => Promise<number>
  /** Throws if a part of the effect is missing in the database or in DNS. */
  readonly expectComplete: (stack: ConsoleStack, subject: string) => Promise<void>
  /** True: the form has its own page and survives a reload. False: a dialog of a page. */
  readonly isForm?: boolean
}

const ADDRESS = '203.0.113.10'
const NEW_ADDRESS = '203.0.113.99'
const RUNS = 'runs.test'

export const pools = ['pool.test', RUNS, 'converge.test', 'resume.test', 'adopt.test']

const dialog = ({ page }: ConsoleSuite) => page.getByRole('dialog')
const activate = ({ client }: ConsoleStack, pool: string, subdomain: string) =>
  client.reserveAndCommit({ domain: pool, subdomain, loadBalancerIP: ADDRESS })
const countNameEvents = async ({ sql }: ConsoleStack, pool: string, subdomain: string, event: string) => {
  const rows = await sql`
    select from allocation_history where pool_domain = ${pool} and subdomain = ${subdomain} and event = ${event}`
  return rows.length
}
const countDeploymentEvents = async ({ sql }: ConsoleStack, subdomain: string, event: string) => {
  const rows = await sql`
    select from deployment_history where sovereign_fqdn = ${`${subdomain}.${RUNS}`} and event = ${event}`
  return rows.length
}
/** DNS follows the database. */
const untilResolves = async ({ api }: ConsoleStack, name: string, addresses: readonly string[]) => {
  for (const label of ['', 'api.', 'console.']) {
    await expect.poll(() => lookUp(api.dnsServer, `${label}${name}`)).toEqual(addresses)
  }
}
export const untilStatus = async ({ sql }: ConsoleStack, subdomain: string, status: string): Promise<void> => {
  await until(`${subdomain} is ${status}`, async () => {
    const [row] = await sql`select status, error from deployments where sovereign_fqdn = ${`${subdomain}.${RUNS}`}`
    if (row?.status === 'failed') throw new Error(row.error)
    return row?.status === status
  })
}

/** A deployment with infrastructure that Terraform has made. Resolves with its id. */
export const createReady = async (stack: ConsoleStack, subdomain: string): Promise<string> => {
  const { id } = await stack.client.createDeployment({
    orgName: 'Globex',
    orgEmail: 'ops@globex.example',
    sovereignDomainMode: 'pool',
    sovereignPoolDomain: RUNS,
    sovereignSubdomain: subdomain,
    providers: ['local'],
    region: 'local',
    sshPublicKey: SSH_PUBLIC_KEY,
  })
  await untilStatus(stack, subdomain, 'ready')
  return id
}

const tasks: readonly FaultTask[] = [
  {
    name: 'release',
    prepare: async (stack, subject) => {
      await activate(stack, 'pool.test', subject)
      return `/names/pool.test/${subject}`
    },
    open: async suite => {
      await suite.press('Release')
      await dialog(suite).getByText('In DNS, 6 record sets are deleted.').waitFor()
    },
    confirm: 'Release',
    done: 'is released',
    countEffects: (stack, subject) => countNameEvents(stack, 'pool.test', subject, 'released'),
    expectComplete: (stack, subject) => untilResolves(stack, `${subject}.pool.test`, []),
  },
  {
    name: 'converge',
    prepare: async (stack, subject) => {
      await activate(stack, 'converge.test', subject)
      await deleteRecord(stack, `api.${subject}.converge.test`, 'A')
      return '/zones/converge.test'
    },
    open: async (suite, subject) => {
      await suite.press('Converge')
      await dialog(suite).getByText(`api.${subject}.converge.test`).waitFor()
    },
    confirm: 'Converge',
    done: /converge\.test: (?:\d+ change|the zone has the desired records)/,
    countEffects: async ({ sql }, subject) => {
      const name = `test.converge.${subject}.api`
      return (await sql`select from local_dns_record_sets where reversed_name = ${name}`).length
    },
    expectComplete: (stack, subject) => untilResolves(stack, `${subject}.converge.test`, [ADDRESS]),
  },
  {
    name: 'resume',
    prepare: async (stack, subject) => {
      await activate(stack, 'resume.test', subject)
      await outdateDatabase(stack, 'resume.test')
      await stack.client.updateName({ domain: 'resume.test', subdomain: subject, loadBalancerIP: NEW_ADDRESS })
      return '/zones/resume.test'
    },
    open: async suite => {
      await suite.press('Resume')
      await dialog(suite).getByText(`database ${NEW_ADDRESS}, zone ${ADDRESS}`).waitFor()
    },
    confirm: 'Resume',
    done: 'resume.test is written again',
    countEffects: async ({ sql }) =>
      (await sql`select from dns_zone_writes where zone = 'resume.test' and stopped_cause is null`).length,
    expectComplete: (stack, subject) => untilResolves(stack, `${subject}.resume.test`, [NEW_ADDRESS]),
  },
  {
    name: 'adopt an orphan',
    prepare: async (stack, subject) => {
      await writeOrphan(stack, subject, 'adopt.test')
      return '/zones/adopt.test'
    },
    open: async (suite, subject) => {
      await suite.press('Compare with the zone')
      await suite.page.getByRole('row', { name: new RegExp(subject) }).waitFor()
      await suite.press('Adopt')
      await dialog(suite).getByRole('checkbox').waitFor()
    },
    confirm: 'Adopt 1',
    done: /orphans? adopted\./,
    countEffects: (stack, subject) => countNameEvents(stack, 'adopt.test', subject, 'adopted'),
    expectComplete: (stack, subject) => untilResolves(stack, `${subject}.adopt.test`, ['203.0.113.200']),
  },
  {
    name: 'cancel',
    prepare: async (stack, subject) => {
      const id = await seedDeployment(stack, { pool: RUNS, subdomain: `c${subject}`, status: 'provisioning' })
      return `/deployments/${id}`
    },
    open: async suite => {
      await suite.press('Cancel the run')
      await dialog(suite).getByText('Terraform is interrupted.').waitFor()
    },
    confirm: 'Cancel the run',
    done: 'is being cancelled',
    countEffects: (stack, subject) => countDeploymentEvents(stack, `c${subject}`, 'cancelled'),
    expectComplete: async ({ sql }, subject) => {
      const rows = await sql`
        select from deployments where sovereign_fqdn = ${`c${subject}.${RUNS}`} and cancelled_at is not null`
      expect(rows.length).toBe(1)
    },
  },
  {
    name: 'release of a lease',
    prepare: async ({ leases }, subject) => {
      await leases.acquire(subject, { holder: 'region-a/controller-0', generation: 0, ttlMs: 3_600_000 })
      return `/leases/${subject}`
    },
    open: async suite => {
      await suite.press('Release')
      await dialog(suite).getByRole('checkbox').check()
    },
    confirm: 'Release',
    done: 'is free.',
    countEffects: async ({ leases }, subject) => (await leases.read(subject)).lease.generation - 1,
    expectComplete: async ({ leases }, subject) => {
      expect((await leases.read(subject)).lease).toMatchObject({ holder: '', generation: 2 })
    },
  },
]

/** With real Terraform. */
const terraformTasks: readonly FaultTask[] = [
  {
    name: 'create with the wizard',
    isForm: true,
    prepare: async () => '/deployments/new',
    open: async ({ page, press, seeText }, subject) => {
      await page.getByLabel('Pool', { exact: true }).selectOption(RUNS)
      await page.getByLabel('Subdomain').fill(`w${subject}`)
      await seeText('is free.')
      await press('Continue')
      await page.getByLabel('Organisation').fill('Globex')
      await page.getByLabel('Mail address').fill('ops@globex.example')
      await page.getByRole('checkbox', { name: 'local' }).check()
      await page.getByLabel('Region').fill('local')
      await press('Continue')
      await page.getByLabel('SSH public key').fill(SSH_PUBLIC_KEY)
      await press('Continue')
      await page.getByRole('heading', { name: 'Summary' }).waitFor()
    },
    confirm: 'Create the deployment',
    done: 'The deployment has started.',
    countEffects: (stack, subject) => countDeploymentEvents(stack, `w${subject}`, 'created'),
    // A run whose process was killed ends as failed.
    expectComplete: async ({ sql }, subject) => {
      await until('the run ends', async () => {
        const [row] = await sql`select status from deployments where sovereign_fqdn = ${`w${subject}.${RUNS}`}`
        return row?.status === 'ready' || row?.status === 'failed'
      })
    },
  },
]

export const faultTasks = missingTerraform === undefined ? [...tasks, ...terraformTasks] : tasks
