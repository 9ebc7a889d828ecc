import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '@pool/dev/server-process'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openPage, signIn, type Visitor } from '../support/browser.ts'
import { lookUp, startTxtServer } from '../support/dns.ts'
import { skipsBrowser, useBrowserSuite } from '../support/session.ts'

// An operator orders a deployment with the wizard and operates it, with real Terraform.

const missingTerraform = findProgram('terraform')
  ? undefined
  : 'Terraform is not installed: install terraform 1.11, to create deployments from the console.'
const skips = shouldSkip(missingTerraform) || skipsBrowser

const sshPublicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f operator'
const folder = mkdtempSync(join(tmpdir(), 'console-wizard-'))

const tenantDns = await startTxtServer()
afterAll(() => tenantDns[Symbol.asyncDispose]())

const getSuite = useBrowserSuite(
  async ({ client }) => {
    await client.reserveName({ domain: 'pool.test', subdomain: 'taken' })
  },
  { PDM_BYO_PROOF: 'required', PDM_BYO_RESOLVERS: tenantDns.address },
)

let visitor: Visitor
let page: Page

beforeEach(async () => {
  if (skips) return
  const { browser, origin, stack } = getSuite()
  visitor = await openPage(browser, origin)
  page = visitor.page
  await signIn(page, origin, stack.api.operatorToken)
})
afterEach(async () => {
  if (skips) return
  await visitor.context.close()
  expect(visitor.faults).toEqual([])
})

const button = (name: string) => page.getByRole('button', { name, exact: true })
const dialog = () => page.getByRole('dialog')
const next = () => button('Continue').click()

/** Fills the form up to the summary. */
const fillForm = async (subdomain: string): Promise<void> => {
  await page.goto(`${getSuite().origin}/console/deployments/new`)
  await page.getByLabel('Subdomain').fill(subdomain)
  await page.getByText(`${subdomain}.pool.test is free.`).waitFor()
  await next()
  await page.getByLabel('Organisation').fill('Globex')
  await page.getByLabel('Mail address').fill('ops@globex.example')
  await page.getByRole('checkbox', { name: 'local' }).check()
  await page.getByLabel('Region').fill('local')
  await next()
  await page.getByLabel('SSH public key').fill(sshPublicKey)
  await page.getByText('The key is valid.').waitFor()
  await next()
  await page.getByRole('heading', { name: 'Summary' }).waitFor()
}

describe.skipIf(skips)('the wizard', () => {
  test('reports each error at its field, and a name that is taken as the operator types', async () => {
    await page.keyboard.press('c')
    await page.getByRole('heading', { name: 'New deployment' }).waitFor()
    await next()
    await page.getByText('The subdomain is required').waitFor()
    await page.getByLabel('Subdomain').pressSequentially('taken')
    const described = async () => {
      const ids = await page.getByLabel('Subdomain').getAttribute('aria-describedby')
      return page.locator(`[id="${ids?.split(' ').at(-1)}"]`).textContent()
    }
    await expect.poll(described).toMatch(/reserved/)
    await page.getByLabel('Subdomain').fill('globex')
    await page.getByText('globex.pool.test is free.').waitFor()
    await next()
    await next()
    for (const text of ['The organisation is required', 'The mail address is required', 'The region is required']) {
      await page.getByText(text).waitFor()
    }
    await page.getByLabel('Mail address').fill('nobody')
    await page.getByLabel('Organisation').focus()
    await page.getByText('The mail address is required').waitFor()
  })

  test('forgets a draft that is discarded, also over a reload', async () => {
    await page.goto(`${getSuite().origin}/console/deployments/new`)
    await page.getByLabel('Subdomain').waitFor()
    expect(await button('Discard the draft').count()).toBe(0)
    await page.getByLabel('Subdomain').fill('draft')
    await page.getByText('draft.pool.test is free.').waitFor()
    await next()
    await page.getByLabel('Organisation').fill('Globex')
    await button('Discard the draft').click()
    await dialog().getByRole('button', { name: 'Discard' }).click()
    await page.getByText('The form is empty again.').waitFor()
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toMatch(/draft"|Globex/)
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload()
      await page.getByLabel('Subdomain').waitFor()
      expect(await page.getByLabel('Subdomain').inputValue()).toBe('')
      expect(await button('Discard the draft').count()).toBe(0)
    }
  })

  test('has a challenge for a domain of the tenant', async () => {
    await page.goto(`${getSuite().origin}/console/deployments/new`)
    await page.getByRole('radio', { name: 'A domain of the tenant' }).check()
    await page.getByLabel('Domain of the tenant').last().fill('localhost')
    await next()
    await page.getByText('The domain is required').waitFor()
    const domain = page.getByLabel('Domain of the tenant').last()
    await domain.fill('in.pool.test')
    await page.getByText('The domain is in the pool pool.test').waitFor()
    await next()
    expect(await domain.getAttribute('aria-invalid')).toBe('true')
    await domain.fill('cloud.globex.example')
    await page.getByText('No deployment has cloud.globex.example.').waitFor()
    await button('Request the TXT record').click()
    await page.getByText('_pool-challenge.cloud.globex.example', { exact: true }).waitFor()
    await page.getByText('The record is not visible yet.').waitFor()
    tenantDns.texts.push((await page.getByRole('definition').nth(2).locator('code').textContent()) ?? '')
    await page.getByText('The record is visible: the domain is proven.').waitFor()
    const { rows } = await getSuite().stack.sql`select count(*)::int as rows from domain_challenges`.then(([row]) => ({
      rows: row?.rows,
    }))
    expect(rows).toBe(1)
  })

  test('keeps a half-filled form over a reload, but no private key', async () => {
    await fillForm('halfway')
    await page.reload()
    await page.getByRole('heading', { name: 'Summary' }).waitFor()
    await page.getByText('halfway.pool.test', { exact: true }).waitFor()
    await button('SSH key').click()
    const privateKey = '-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----'
    await page.getByLabel('SSH public key').fill(privateKey)
    await page
      .getByText(/private key/)
      .first()
      .waitFor()
    expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain('c2VjcmV0')
    await page.reload()
    expect(await page.getByLabel('SSH public key').inputValue()).toBe('')
  })

  test('creates a deployment, whose log is live, and which is destroyed and deleted again', async () => {
    const { stack } = getSuite()
    const keyFile = join(folder, 'id_ed25519.pub')
    writeFileSync(keyFile, `${sshPublicKey}\n`)
    await fillForm('globex')
    await button('SSH key').click()
    await page.getByLabel('SSH public key').fill('')
    await page.getByLabel('Or read it from a file').setInputFiles(keyFile)
    await page.getByText('The key is valid.').waitFor()
    await next()
    await button('Create the deployment').click()
    await page.getByRole('heading', { name: 'globex.pool.test' }).waitFor()
    await page.getByText('The deployment is ready.').waitFor()
    await page.getByText('The log is complete.').waitFor()
    await expect.poll(() => lookUp(stack.api.dnsServer, 'globex.pool.test')).toHaveLength(1)
    const follow = () => button('Follow').getAttribute('aria-pressed')
    await page.getByRole('region', { name: 'Log' }).focus()
    await page.keyboard.press('Home')
    await page.getByText('Reserved the name globex.pool.test.').waitFor()
    expect(await follow()).toBe('false')
    await page.keyboard.press('End')
    await expect.poll(follow).toBe('true')
    await page.keyboard.press('Home')
    await expect.poll(follow).toBe('false')
    // The end that Follow asks for must not move a reader who leaves it in the same frame.
    await page.evaluate(async () => {
      const log = document.querySelector('section[aria-label=Log]')
      const button = [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Follow')
      if (!log || !button) throw new Error('The page shows no log.')
      button.click()
      for (let microtask = 0; microtask < 10; microtask++) await Promise.resolve()
      if (button.getAttribute('aria-pressed') !== 'true') throw new Error('The click is not rendered yet.')
      log.dispatchEvent(new KeyboardEvent('keydown', { key: 'Home', bubbles: true, cancelable: true }))
      for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame)
    })
    expect(await follow()).toBe('false')
    await page.getByText('Reserved the name globex.pool.test.').waitFor()
    await page.keyboard.press('End')
    await expect.poll(follow).toBe('true')
    await page.getByLabel('Search the log').fill('load_balancer')
    await expect.poll(() => page.locator('.log mark').count()).toBeGreaterThan(0)
    await page.getByLabel('Search the log').fill('no such line')
    await page.getByText('No line matches.').waitFor()
    const download = page.waitForEvent('download')
    await button('Download').click()
    expect((await download).suggestedFilename()).toMatch(/^[0-9a-f-]{36}\.log$/)

    await button('Destroy').click()
    await dialog().getByText('Terraform destroys the infrastructure of globex.pool.test.').waitFor()
    await dialog().getByRole('button', { name: 'Show the plan' }).click()
    await dialog()
      .getByText(/to destroy/)
      .first()
      .waitFor()
    await dialog().getByRole('button', { name: 'Destroy' }).click()
    await button('Delete').waitFor()
    await expect.poll(() => lookUp(stack.api.dnsServer, 'globex.pool.test')).toEqual([])
    await button('Delete').click()
    await dialog().getByText('The deployment and its log are deleted').waitFor()
    await dialog().getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'Deployments', level: 1 }).waitFor()
    expect((await stack.client.listDeployments()).deployments).toEqual([])
  })

  test('shows a request that curl can send as it is', async () => {
    const { stack } = getSuite()
    await fillForm('by-curl')
    await page.getByText('The same request with curl').click()
    const command = (await page.locator('pre.code').textContent()) ?? ''
    writeFileSync(join(folder, 'operator-token'), stack.api.operatorToken)
    const answer = execFileSync('bash', ['-c', command], { cwd: folder, encoding: 'utf8' })
    const { id } = JSON.parse(answer)
    await page.goto(`${getSuite().origin}/console/deployments/${id}`)
    await page.getByText('The deployment is ready.').waitFor()
    rmSync(folder, { recursive: true, force: true })
  })

  test('puts the rejection of the service at the field', async () => {
    const { stack } = getSuite()
    await fillForm('race')
    await stack.client.reserveName({ domain: 'pool.test', subdomain: 'race' })
    await button('Create the deployment').click()
    await page.getByRole('heading', { name: 'Domain' }).waitFor()
    expect(await page.getByLabel('Subdomain').getAttribute('aria-invalid')).toBe('true')
  })
})
